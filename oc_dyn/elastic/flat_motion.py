"""The flat map of an elastic robot in a Problem: the links' motion is a chain of integrators, the rest expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, OrderError, ShapeError
from ..function import function
from ..model.loops import LoopRobot
from ..optimal_control.problem import Problem
from ..validation import number, one_of
from .damped_collocation import CollocatedDeflections
from .damped_flat import check_damped, damped_flat_map, damped_gaps, wanted_continuity
from .drives import at_drives
from .effects import refuse_effects
from .flat_map import analytic_flat_map
from .model import ElasticRobot
from .motor_side import at_motors
from .plan_outputs import deflected


@dataclass(frozen=True, eq=False)
class FlatMotion:
    """Expressions of a problem: q (list of q and its derivatives), theta, dtheta, tau_m, dtau_m (None where the order
    was not asked for), deflection, one a row of theta; sigma and its derivatives, [] where no stiffness varies;
    motor_speed (tau_m,), of rigid joints' motors, too."""

    q: list[ca.MX]
    theta: ca.MX
    dtheta: ca.MX
    tau_m: ca.MX
    dtau_m: ca.MX | None
    deflection: ca.MX
    sigma: list[ca.MX]
    motor_speed: ca.MX
    _between: Callable[[float], FlatMotion] | None = field(default=None, repr=False)

    def between(self, share: float) -> FlatMotion:
        """The same a share of the interval after its start, of what flat_motion returned."""
        if self._between is None:
            raise OrderError("FlatMotion: between is for what flat_motion returns")
        return self._between(share)


def flat_motion(
    problem: Problem, elastic: ElasticRobot, *, continuity: int | None = None, rate: bool = False, guess: Any = 0.0,
    scale: Any = None, sigma: Sequence[ca.MX] | None = None, derivatives: str = "ad", deflection_scale: float = 0.1,
) -> FlatMotion:  # fmt: skip
    """FlatMotion of an elastic robot as states and controls of a Problem.

    continuity: of q; its derivative of order continuity + 1 is the control. By default what a continuous motor torque,
    or rate, needs: 4 for the reduced model, 3 where all its springs are damped. rate: whether the rate of the motor
    torque is asked for. guess, scale: as of Problem.chain. sigma: expressions [sigma, dsigma, d2sigma, ...] of robots
    that vary their stiffness, for instance of a chain. derivatives: of the links' torques, "analytic" or "ad".
    deflection_scale [rad]: of damped springs, whose deflections are unknowns "damped_deflection" of the problem; ends
    of them are for the caller to say, as by problem.periodic("damped_deflection") or a start at rest.
    Raises OrderError, naming the order needed, for a continuity that is too low.
    """
    if continuity is None:
        continuity = wanted_continuity(elastic, "torque_rate" if rate else "torque")
    check_flat(elastic, continuity, rate)
    q = problem.chain("q", elastic.nq, continuity + 1, guess=guess, scale=scale)
    z = None
    if elastic.damped:
        size, T = len(elastic.damped), float(problem.nominal)
        scale_of = number("deflection_scale", deflection_scale, above=0) * (10 / T) ** np.arange(3 + rate)
        z = CollocatedDeflections(problem, size, 3 + rate, np.repeat(scale_of, size))

    def between(share: float) -> FlatMotion:
        at = problem.between(q, share)
        held = _between(problem, sigma, share)
        own = None if z is None else z.jets(share)
        return flat_expressions(elastic, at, held, rate, derivatives, z=own, between=between)

    if z is not None:
        _hold_gaps(problem, elastic, q, sigma, z, derivatives)
    return between(0)


def _hold_gaps(
    problem: Problem, elastic: ElasticRobot, q: list[ca.MX], sigma: Any, z: CollocatedDeflections, derivatives: str,
) -> None:  # fmt: skip
    """Let the equations of damped springs hold within the intervals."""
    size, T = z.size, float(problem.nominal)
    orders = np.arange(z.state.numel() // size, dtype=float)
    for share in z.shares:
        at, held = problem.between(q, share), _between(problem, sigma, share)
        gaps = gaps_of(elastic, at, held, z.jets(share), z.rates(share), derivatives)
        unit = np.repeat(100 * (10 / T) ** orders, size)
        problem.limit(0, ca.vertcat(*gaps) / unit, 0, name=f"damped springs at {share:.3f}")


def _between(problem: Problem, sigma: Sequence[ca.MX] | None, share: float) -> list[ca.MX]:
    """Stiffnesses a share of the interval after its start, where they are a chain; else as they are."""
    held = list(sigma or [])
    chained = bool(held) and any(held[0] is x[0] for x in problem._chains)
    return problem.between(held, share) if chained else held


def check_flat(elastic: ElasticRobot, continuity: Any, rate: bool) -> None:
    """Refuse what has no flat motion: a continuity that is too low, springs with damping, joints of other kinds."""
    if isinstance(elastic.links, LoopRobot):
        raise ModelError(
            elastic.name,
            [
                "plans of elastic robots are for trees; plan the links by plan_point_to_point with continuity=4, whose "
                "motion elastic_flat_map and the laws of control take"
            ],
        )
    refuse_effects(f"planning {elastic.name}", elastic)
    wanted = wanted_continuity(elastic, "torque_rate" if rate else "torque")
    if isinstance(continuity, bool) or not isinstance(continuity, (int, np.integer)) or continuity < wanted:
        what = "a bounded and continuous rate of the motor torque" if rate else "a continuous motor torque"
        raise OrderError(
            f"planning {elastic.name}: continuity is {continuity!r}, but {what} needs q {wanted} times continuously "
            f"differentiable; give continuity={wanted} or more"
        )
    if elastic.nq != elastic.nv:
        raise ShapeError(f"planning {elastic.name}: it is for joints of one coordinate, whose rates are the velocities")
    check_damped(elastic)
    if not elastic.damped:
        function(elastic, "elastic_flat_map", order=int(rate))


def flat_expressions(
    elastic: ElasticRobot, q: list[ca.MX], sigma: Sequence[ca.MX] | None = None, rate: bool = False,
    derivatives: str = "ad", *, z: Sequence[ca.MX] | None = None, between: Any = None,
) -> FlatMotion:  # fmt: skip
    """FlatMotion of expressions [q, v, ...] and [sigma, dsigma, ...]; derivatives as of flat_motion. z: [z, z', ...] of
    damped springs, whose equation is for the caller to keep: `gap` is zero there."""
    one_of("kind of derivatives", derivatives, ("ad", "analytic"))
    order, sigma = int(rate), list(sigma or [])
    if elastic.damped and z is None:
        raise ShapeError(f"planning {elastic.name}: give z=[z, z', z''] of the damped springs, or use flat_motion")
    if elastic.damped:
        flat = damped_flat_map(elastic, order, derivatives)
    elif derivatives == "analytic":
        flat = analytic_flat_map(elastic, order)
    else:
        flat = function(elastic, "elastic_flat_map", order=order)
    found = flat.call(_arguments(elastic, flat, q, sigma, z or []), derivatives == "analytic", False)
    out = dict(zip(flat.name_out(), found, strict=True))
    deflection = out["theta"] - ca.vertcat(*(q[0][i] for i in deflected(elastic)))
    speed: Any = at_motors(elastic, ca.vertsplit(ca.MX(at_drives(elastic, list(q[:2]))[1])), out["dtheta"])
    dtau_m = out["dtau_m"] if rate else None
    return FlatMotion(
        q, out["theta"], out["dtheta"], out["tau_m"], dtau_m, deflection, sigma, speed, between,
    )  # fmt: skip


def gaps_of(
    elastic: ElasticRobot, q: Sequence[ca.MX], sigma: Sequence[ca.MX], z: Sequence[ca.MX], rates: Sequence[ca.MX],
    derivatives: str = "ad",
) -> list[ca.MX]:  # fmt: skip
    """[(damped springs,), ..] what is left of the equations of z, z', ..; rates: of these, as they are in a program."""
    f = damped_gaps(elastic, len(z) - 3, derivatives)
    return f.call([*_arguments(elastic, f, q, sigma, z, len(z)), *rates], derivatives == "analytic", False)


def _arguments(
    elastic: ElasticRobot, f: ca.Function, q: Sequence[ca.MX], sigma: Sequence[ca.MX], z: Sequence[ca.MX],
    more: int = 0,
) -> list[ca.MX]:  # fmt: skip
    """Inputs of a flat map in their order, but for `more` at the end."""
    names = f.name_in()[: f.n_in() - more]
    own, held = ([n for n in names if n.endswith(x)] for x in ("z", "sigma"))
    given = dict(zip([n for n in names if n not in own and n not in held], q, strict=False))
    given |= dict(zip(held, sigma, strict=False)) | dict(zip(own, z, strict=False))
    missing = [n for n in names if n not in given]
    if missing:
        raise ShapeError(f"planning {elastic.name}: the flat map needs {', '.join(missing)} besides; give sigma=[...]")
    return [given[n] for n in names]
