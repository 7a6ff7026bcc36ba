"""Simulation of an elastic robot through phases of contact: stance, flight, touch-down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ShapeError
from ...function import function
from ...kinematics.contact import contact_points
from ...numbers import are_sane, shortened
from ...types import Array, Numbers
from ..dop853 import integrate
from ..model import ElasticRobot
from ..plant import plant
from .flatness import contact_names
from .stance import check_held, stance_rates, touch_down

_MOST_ROWS = 1_000_000  # of a phase

@dataclass(frozen=True)
class Phase:
    """A phase of a motion: frames that the ground holds as points, () in flight, and how long [s]."""

    contacts: tuple[str, ...]
    duration: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "contacts", contact_names("Phase", self.contacts))
        object.__setattr__(self, "duration", validation.number("Phase: duration", self.duration, above=0))


@dataclass(frozen=True, eq=False)
class ContactRun:
    """Result of simulate_contacts, rows are times: t (K,) [s]; at ends of phases there are two rows, before and after.

    states (K, size); q, v, theta, dtheta of them; tau_m (K, motors); forces {frame: (K, 3)} [N] in root axes, zero
    where it is not held; phase (K,) its number. impulses: one per phase, {frame: (3,)} [N s] at its start; lost
    (phases,) [J]: kinetic energy that these take. slip [m]: how far points that are held have moved in the integration.
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
    lost: Array
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
    At the start of each phase, the first included, the points that come into contact stop at once (impact without
    restitution); `start` is the state before. Times of contact are told, not found: forces that would pull, and feet
    that would sink in, are results to look at. Damping, friction, parallel springs and laws of with_friction count.
    Raises SolveError where integration fails; ShapeError.
    """
    check_held("simulate_contacts", elastic)
    _check_phases(phases)
    dt, tolerance, gain = _settings(phases, dt, rtol, atol, gain)
    p = plant(elastic)
    x = validation.numbers("simulate_contacts: start", start, p.size)
    if not are_sane(x):
        raise ShapeError("simulate_contacts: start has entries that are not finite")
    laws = list(torques) if isinstance(torques, (list, tuple)) else [torques] * len(phases)
    if len(laws) != len(phases):
        raise ShapeError(f"simulate_contacts: got {len(laws)} laws of torques, expected one, or {len(phases)}")
    frames = tuple(dict.fromkeys(name for phase in phases for name in phase.contacts))
    rows: list[dict[str, Any]] = []
    impulses: list[dict[str, Array]] = []
    lost: list[float] = []
    begin, before, slip = 0.0, (), 0.0
    for number, (phase, law) in enumerate(zip(phases, laws, strict=True)):
        impulses.append(dict.fromkeys(phase.contacts, np.zeros(3)))
        lost.append(0.0)
        if set(phase.contacts) - set(before):
            x, impulses[-1], lost[-1] = _impact(elastic, phase.contacts, x)
        row = _phase(elastic, phase, law, begin, x, dt, tolerance, gain)
        rows.append({**row, "phase": np.full(len(row["t"]), number)})
        slip = max(slip, _slip(elastic, phase.contacts, row["x"]))
        x, before, begin = row["x"][-1], phase.contacts, row["t"][-1]
    return _collected(elastic, frames, phases, rows, (tuple(impulses), np.array(lost)), slip)


def _check_phases(phases: Any) -> None:
    if not isinstance(phases, (tuple, list)) or not all(isinstance(x, Phase) for x in phases):
        raise ShapeError(f"simulate_contacts: phases is {shortened(phases)}, expected a list of od.elastic.Phase")
    if not phases:
        raise ShapeError("simulate_contacts: there is no phase")


def _settings(
    phases: Sequence[Phase], dt: Any, rtol: Any, atol: Any, gain: Any,
) -> tuple[float, tuple[float, float], float]:  # fmt: skip
    """(dt, (rtol, atol), gain), checked."""
    dt = validation.number("simulate_contacts: dt", dt, above=0)
    longest = max(phase.duration for phase in phases)
    if longest / dt > _MOST_ROWS:
        raise ShapeError(f"simulate_contacts: dt is {dt:g} s, expected at least {longest / _MOST_ROWS:g} s")
    rtol = validation.number("simulate_contacts: rtol", rtol, above=0)
    atol = rtol / 100 if atol is None else validation.number("simulate_contacts: atol", atol, above=0)
    gain = validation.number("simulate_contacts: gain", gain)
    if gain < 0:
        raise ShapeError(f"simulate_contacts: gain is {gain:g}, expected a number of at least 0")
    return dt, (rtol, atol), gain


def _impact(elastic: ElasticRobot, contacts: tuple[str, ...], x: Array) -> tuple[Array, dict[str, Array], float]:
    """(state after, {frame: impulse [N s]}, kinetic energy lost [J]) of points that stop."""
    after, impulse = touch_down(elastic, contacts)(x)
    parts, mass = plant(elastic).parts, function(elastic.links, "mass_matrix")
    end = np.array(after).ravel()
    M, v, v_end = np.array(mass(x[parts["q"]])), x[parts["v"]], end[parts["v"]]
    lost = float((v - v_end) @ M @ (v - v_end)) / 2  # of an impact without restitution: Carnot's theorem
    return end, dict(zip(contacts, np.array(impulse).reshape(-1, 3), strict=True)), lost


def _phase(
    elastic: ElasticRobot, phase: Phase, law: Any, begin: float, x0: Array, dt: float, tolerance: Any, gain: float,
) -> dict[str, Any]:  # fmt: skip
    """{"t", "x", "tau_m", "f"} of a phase, rows are times."""
    t, x, none = ca.MX.sym("t"), ca.MX.sym("x", plant(elastic).size), ca.MX.sym("p", 0)
    u = _torques(elastic, law, t, x)
    rates = stance_rates(elastic, phase.contacts)
    dx, f = rates(x, u, ca.DM([0.0, gain]))
    count = max(1, int(np.ceil(phase.duration / dt - 1e-9)))
    times = begin + np.linspace(0.0, phase.duration, count + 1)
    found, _ = integrate(ca.Function("rates", [t, x, none], [dx]), times, x0, (), *tolerance)
    seen = ca.Function("seen", [t, x], [ca.densify(u), f])
    tau_m, forces = seen.map(times.size)(times[None], found)
    return {"t": times, "x": found.T, "tau_m": np.array(tau_m).T, "f": np.array(forces).T}


def _torques(elastic: ElasticRobot, law: Any, t: Any, x: Any) -> ca.MX:
    """(motors,) what a law of torques gives."""
    where, n = "simulate_contacts: torques", len(elastic.motor_names)
    if not callable(law):
        raise ShapeError(f"{where}: got {shortened(law)}, expected a function (t, x) -> tau_m")
    if isinstance(law, ca.Function) and (law.n_in(), law.n_out()) != (2, 1):
        ports = f"{', '.join(law.name_in())} -> {', '.join(law.name_out())}"
        raise ShapeError(f"{where}: got a Function {ports}, expected (t, x) -> tau_m")
    u = validation.expression(where, law(t, x))
    if u.numel() != n:
        motors = ", ".join(elastic.motor_names)
        raise ShapeError(f"{where}: the law gives {u.numel()} torques, expected {n}, one per motor: {motors}")
    return u


def _slip(elastic: ElasticRobot, contacts: tuple[str, ...], states: Array) -> float:
    if not contacts:
        return 0.0
    f = contact_points(elastic.links, contacts)
    p = np.array([np.array(f(x[: elastic.nq], np.zeros(elastic.nv))[0]) for x in (states[0], states[-1])])
    return float(np.abs(p[1] - p[0]).max())


def _collected(
    elastic: ElasticRobot, frames: tuple[str, ...], phases: Sequence[Phase], rows: list[dict[str, Any]], impacts: Any,
    slip: float,
) -> ContactRun:  # fmt: skip
    t, states, tau_m, phase = (np.concatenate([row[name] for row in rows]) for name in ("t", "x", "tau_m", "phase"))
    forces: dict[str, list[Array]] = {name: [] for name in frames}
    for told, row in zip(phases, rows, strict=True):
        for name, parts in forces.items():
            k = told.contacts.index(name) if name in told.contacts else None
            parts.append(np.zeros((len(row["t"]), 3)) if k is None else row["f"][:, 3 * k : 3 * k + 3])
    by_name = {name: states[:, plant(elastic).parts[name]] for name in ("q", "v", "theta", "dtheta")}
    whole = {name: np.concatenate(x) for name, x in forces.items()}
    impulses, lost = impacts
    return ContactRun(
        t, states, **by_name, tau_m=tau_m, forces=whole, phase=phase, impulses=impulses, lost=lost, slip=slip
    )
