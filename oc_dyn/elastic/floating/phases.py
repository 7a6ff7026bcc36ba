"""Simulation of an elastic robot through phases of contact: stance, flight, touch-down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ShapeError
from ...kinematics.contact import contact_points
from ...numbers import are_sane
from ...types import Array, Numbers
from ..dop853 import integrate
from ..model import ElasticRobot
from ..plant import plant
from .stance import check_held, stance_rates, touch_down


@dataclass(frozen=True)
class Phase:
    """A phase of a motion: frames that the ground holds as points, and how long [s]."""

    contacts: tuple[str, ...]
    duration: float


@dataclass(frozen=True, eq=False)
class ContactRun:
    """Result of simulate_contacts, rows are times: t (K,) [s]; at ends of phases there are two rows, before and after.

    states (K, size); q, v, theta, dtheta of them; tau_m (K, motors); forces {frame: (K, 3)} [N] in root axes, zero
    where it is not held; phase (K,) its number. impulses: one per phase, {frame: (3,)} [N s] at its start. slip [m]:
    how far points that are held have moved in the integration.
    """

    t: Array
    states: Array
    q: Array
    v: Array
    theta: Array
    dtheta: Array
    tau_m: Array
    forces: dict[str, Array]
    phase: Array
    impulses: tuple[dict[str, Array], ...]
    slip: float


def simulate_contacts(
    elastic: ElasticRobot, phases: Sequence[Phase], torques: ca.Function | Callable[[Any, Any], Any], start: Numbers, *,
    dt: float = 0.005, rtol: float = 1e-10, atol: float | None = None, gain: float = 0.0,
) -> ContactRun:  # fmt: skip
    """ContactRun of a floating elastic robot from the state `start` through phases whose times are told.

    torques: casadi.Function or callable (t, x) -> tau_m (motors,), expressions, t since the start of the first phase;
        smooth within phases. Or one per phase.
    gain [1/s]: with which velocities of points that are held are taken back (Baumgarte); 0: their accelerations are
        zero, and what rounding leaves stays.
    dt [s]: between rows. rtol, atol: of the integration by dop853; atol default rtol / 100.
    At the start of each phase the points that come into contact stop at once (impact without restitution). Times of
    contact are told, not found: forces that would pull, and feet that would sink in, are results to look at.
    Raises SolveError where integration fails; ShapeError.
    """
    check_held("simulate_contacts", elastic)
    if not phases:
        raise ShapeError("simulate_contacts: there is no phase")
    p = plant(elastic)
    x = validation.numbers("simulate_contacts: start", start, p.size)
    if not are_sane(x):
        raise ShapeError("simulate_contacts: start has entries that are not finite")
    laws = list(torques) if isinstance(torques, (list, tuple)) else [torques] * len(phases)
    if len(laws) != len(phases):
        raise ShapeError(f"simulate_contacts: got {len(laws)} laws of torques, expected one, or {len(phases)}")
    frames = tuple(dict.fromkeys(name for phase in phases for name in phase.contacts))
    rows: list[dict[str, Any]] = []
    impulses, begin, before, slip = [], 0.0, (), 0.0
    for number, (phase, law) in enumerate(zip(phases, laws, strict=True)):
        new = tuple(name for name in phase.contacts if name not in before)
        impulses.append(dict.fromkeys(phase.contacts, np.zeros(3)))
        if new and number:
            after, impulse = touch_down(elastic, phase.contacts)(x)
            x = np.array(after).ravel()
            parts = np.array(impulse).reshape(-1, 3)
            impulses[-1] = dict(zip(phase.contacts, parts, strict=True))
        row = _phase(elastic, phase, law, begin, x, dt, (rtol, rtol / 100 if atol is None else atol), gain)
        rows.append({**row, "phase": np.full(len(row["t"]), number)})
        slip = max(slip, _slip(elastic, phase.contacts, row["x"]))
        x, before, begin = row["x"][-1], phase.contacts, row["t"][-1]
    return _collected(elastic, frames, phases, rows, tuple(impulses), slip)


def _phase(
    elastic: ElasticRobot, phase: Phase, law: Any, begin: float, x0: Array, dt: float, tolerance: Any, gain: float,
) -> dict[str, Any]:  # fmt: skip
    """{"t", "x", "tau_m", "f"} of a phase, rows are times."""
    rates = stance_rates(elastic, phase.contacts)
    t, x, none = ca.MX.sym("t"), ca.MX.sym("x", rates.size1_in(0)), ca.MX.sym("p", 0)
    u = law(t, x)
    dx, f = rates(x, u, ca.DM([0.0, gain]))
    count = max(1, int(np.ceil(phase.duration / dt - 1e-9)))
    times = begin + np.linspace(0.0, phase.duration, count + 1)
    found, _ = integrate(ca.Function("rates", [t, x, none], [dx]), times, x0, (), *tolerance)
    seen = ca.Function("seen", [t, x], [ca.densify(u), f])
    tau_m, forces = seen.map(times.size)(times[None], found)
    return {"t": times, "x": found.T, "tau_m": np.array(tau_m).T, "f": np.array(forces).T}


def _slip(elastic: ElasticRobot, contacts: tuple[str, ...], states: Array) -> float:
    if not contacts:
        return 0.0
    f = contact_points(elastic.links, contacts)
    p = np.array([np.array(f(x[: elastic.nq], np.zeros(elastic.nv))[0]) for x in (states[0], states[-1])])
    return float(np.abs(p[1] - p[0]).max())


def _collected(
    elastic: ElasticRobot, frames: tuple[str, ...], phases: Sequence[Phase], rows: list[dict[str, Any]], impulses: Any,
    slip: float,
) -> ContactRun:  # fmt: skip
    t, states, tau_m, phase = (np.concatenate([row[name] for row in rows]) for name in ("t", "x", "tau_m", "phase"))
    forces: dict[str, list[Array]] = {name: [] for name in frames}
    for told, row in zip(phases, rows, strict=True):
        for name, parts in forces.items():
            k = told.contacts.index(name) if name in told.contacts else None
            parts.append(np.zeros((len(row["t"]), 3)) if k is None else row["f"][:, 3 * k : 3 * k + 3])
    by_name = {name: states[:, part] for name, part in plant(elastic).parts.items()}
    whole = {name: np.concatenate(x) for name, x in forces.items()}
    return ContactRun(t, states, **by_name, tau_m=tau_m, forces=whole, phase=phase, impulses=impulses, slip=slip)
