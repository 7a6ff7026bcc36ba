"""What a motion that is not quite possible costs: the error of the robot under the motor torques made of it.

A motion r(t) of a robot that is not flat, planned with base equations that hold at some times alone, has a defect

    d(t) = r' - F(r, u),    F the rates of the elastic robot, u the torques of its flat map.

The robot driven by u, open loop, is off by e = x - r with e' = F(r + e, u) - F(r, u) - d. To first order in d

    e1(t) = P(t, 0) e(0) - integral of P(t, s) d(s) ds,    |e1| <= |P(t, 0) e(0)| + integral of |P(t, s) d(s)| ds,

P being the transition matrix of the linearised robot along the motion. What is left out is of second order; it is
propagated in the same way from F(r + e1, u) - F(r, u) - A e1. Errors in coordinates, those of quaternions included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ... import validation
from ...errors import ShapeError
from ...numbers import are_sane, shortened
from ...types import Array, Numbers
from ..model import ElasticRobot
from .contacts import contact_flat_map
from .flatness import check_floating, contact_names
from .stance import stance_rates

_ROWS = 20_000  # times, of each of which a column is kept


@dataclass(frozen=True, eq=False)
class MotionError:
    """What is off along a motion, rows are times t (K,) [s], columns the state, plant(elastic).parts.

    reference (K, size): the motion; defect (K, size): by how much it misses the robot's rates. first: the error to
    first order. second: size of what that leaves out, to second order. bound: of the error, whatever the signs of the
    defect: first order by absolute values, and twice `second`.
    tau_base (K, 6): what is missing in the base's equations [Nm, N].
    """

    t: Array
    reference: Array
    defect: Array
    first: Array
    second: Array
    bound: Array
    tau_base: Array


def motion_error(
    elastic: ElasticRobot, motion: ca.Function, duration: float, contacts: Sequence[str] = (), *, dt: float = 1e-3,
    start: Numbers | None = None,
) -> MotionError:  # fmt: skip
    """MotionError of a floating elastic robot under the motor torques of its flat map along a motion.

    motion: casadi.Function t -> q, v, dv, d2v, d3v, and f, df, d2f (3, k) where there are contacts, outputs of these
    names. duration [s]. contacts: frames that the ground holds as points. dt [s]: of the rule by which it is
    integrated, fourth order; spring oscillations are to be resolved. start (size,): error of the state at the start.
    Raises ShapeError for motions that lack an output.
    """
    check_floating("motion_error", elastic)
    contacts = contact_names("motion_error", contacts)
    dt = validation.number("motion_error: dt", dt, above=0)
    if not isinstance(motion, ca.Function) or motion.n_in() != 1:
        raise ShapeError(f"motion_error: the motion is {shortened(motion)}, expected a casadi.Function t -> q, v, ..")
    flat = contact_flat_map(elastic, tuple(contacts))
    missing = [n for n in flat.name_in() if n not in motion.name_out() and flat.size_in(n)[1]]
    if missing:
        raise ShapeError(f"motion_error: the motion lacks {', '.join(missing)}; it is to be a Function t -> these")
    count = max(1, int(np.ceil(validation.number("motion_error: duration", duration, above=0) / dt - 1e-9)))
    validation.count("motion_error: rows", count, 1, _ROWS)
    times = np.linspace(0.0, duration, 2 * count + 1)  # and the middles of steps
    seen, rates = _along(elastic, motion, flat, tuple(contacts))
    x, d, A, tau_base = (np.array(y) for y in seen.map(times.size)(times[None]))
    n = len(x)
    e0 = np.zeros(n) if start is None else validation.numbers("motion_error: start", start, n)
    if not are_sane(e0):
        raise ShapeError("motion_error: start has entries that are not finite")
    A = A.reshape(n, times.size, n).transpose(1, 0, 2)
    steps = [_step(A[2 * k], A[2 * k + 1], A[2 * k + 2], times[2] - times[0]) for k in range(count)]
    first, absolute = _propagated(steps, -d.T, e0, times[2] - times[0])
    middle = np.array([(first[k] + first[k + 1]) / 2 for k in range(count)])
    e = np.empty((times.size, n))
    e[::2], e[1::2] = first, middle
    off = rates.map(times.size)(times[None], e.T).full() - np.einsum("kij,kj->ik", A, e)
    second = _propagated(steps, off.T, np.zeros(n), times[2] - times[0])[1]
    rows = slice(None, None, 2)
    return MotionError(
        times[rows], x.T[rows], d.T[rows], first, second, absolute + 2 * second, tau_base.T[rows]
    )  # fmt: skip


def _along(elastic: ElasticRobot, motion: ca.Function, flat: Any, contacts: tuple[str, ...]) -> Any:
    """(t -> state, defect, Jacobian of the rates, tau_base; (t, e) -> rates at state + e less those at the state)."""
    t = ca.MX.sym("t")
    given = dict(zip(motion.name_out(), motion.call([t]), strict=True))
    out = flat(**{n: given[n] for n in flat.name_in() if n in given and flat.size_in(n)[1]})
    x = ca.vertcat(given["q"], given["v"], out["theta"], out["dtheta"])
    held = stance_rates(elastic, contacts)
    X, U = ca.SX.sym("x", held.size1_in(0)), ca.SX.sym("u", held.size1_in(1))
    dx = held(X, U, ca.DM.zeros(2))[0]
    F = ca.Function("F", [X, U], [dx, ca.jacobian(dx, X)])
    value, A = F(x, out["tau_m"])
    rate: Any = elastic.links.configuration_rate(given["q"], given["v"])
    wanted = ca.vertcat(rate, given["dv"], out["dtheta"], out["d2theta"])
    seen = ca.Function("seen", [t], [x, wanted - value, ca.densify(A), out["tau_base"]])
    e = ca.MX.sym("e", X.numel())
    return seen, ca.Function("off", [t, e], [F(x + e, out["tau_m"])[0] - value])


def _step(A0: Array, A1: Array, A2: Array, h: float) -> tuple[Array, Array]:
    """(transition over a step of length h, and over its second half), by the classical rule of order 4."""
    one = np.eye(len(A0))

    def over(A: Array, M: Array, B: Array, h: float) -> Array:
        k1 = A
        k2 = M @ (one + h / 2 * k1)
        k3 = M @ (one + h / 2 * k2)
        return one + h / 6 * (k1 + 2 * k2 + 2 * k3 + B @ (one + h * k3))

    return over(A0, A1, A2, h), over(A1, (A1 + A2) / 2, A2, h / 2)


def _propagated(steps: Any, source: Array, e0: Array, h: float) -> tuple[Array, Array]:
    """(errors (K, n), and with absolute values of every contribution) of e' = A e + source; by Simpson's rule."""
    n = len(e0)
    first, absolute = [e0], [np.abs(e0)]
    parts = np.empty((n, 1 + len(steps)))  # contributions of the start and of each step, as they have become
    parts[:, 0] = e0
    for k, (P, half) in enumerate(steps):
        a, b, c = (source[2 * k + i] for i in range(3))
        parts[:, : k + 1] = P @ parts[:, : k + 1]
        parts[:, k + 1] = h / 6 * (P @ a + 4 * half @ b + c)
        first.append(parts[:, : k + 2].sum(axis=1))
        absolute.append(np.abs(parts[:, : k + 2]).sum(axis=1))
    return np.array(first), np.array(absolute)
