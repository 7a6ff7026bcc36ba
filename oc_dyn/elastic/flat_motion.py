"""The flat map of an elastic robot in a Problem: the links' motion is a chain of integrators, the rest expressions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ModelError, OrderError, ShapeError
from ..function import function
from ..model.loops import LoopRobot
from ..optimal_control.problem import Problem
from ..validation import one_of
from .flat_map import analytic_flat_map
from .model import ElasticRobot
from .plan import deflected


@dataclass(frozen=True, eq=False)
class FlatMotion:
    """Expressions of a problem: q (list of q and its derivatives), theta, dtheta, tau_m, dtau_m (None where the order
    was not asked for), deflection, one a row of theta; sigma and its derivatives, [] where no stiffness varies."""

    q: list[ca.MX]
    theta: ca.MX
    dtheta: ca.MX
    tau_m: ca.MX
    dtau_m: ca.MX | None
    deflection: ca.MX
    sigma: list[ca.MX]


def flat_motion(
    problem: Problem, elastic: ElasticRobot, *, continuity: int = 4, rate: bool = False, guess: Any = 0.0,
    scale: Any = None, sigma: Sequence[ca.MX] | None = None, derivatives: str = "ad",
) -> FlatMotion:  # fmt: skip
    """FlatMotion of an elastic robot as states and controls of a Problem.

    continuity: of q; its derivative of order continuity + 1 is the control. rate: whether the rate of the motor torque
    is asked for. guess, scale: as of Problem.chain. sigma: expressions [sigma, dsigma, d2sigma, ...] of robots that
    vary their stiffness, for instance of a chain. derivatives: of the links' torques, "analytic" or "ad".
    Raises OrderError, naming the order needed, for a continuity that is too low.
    """
    check_flat(elastic, continuity, rate)
    q = problem.chain("q", elastic.nq, continuity + 1, guess=guess, scale=scale)
    return flat_expressions(elastic, q, sigma, rate, derivatives)


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
    wanted = elastic.continuity("torque_rate" if rate else "torque")
    if isinstance(continuity, bool) or not isinstance(continuity, (int, np.integer)) or continuity < wanted:
        what = "a bounded and continuous rate of the motor torque" if rate else "a continuous motor torque"
        raise OrderError(
            f"planning {elastic.name}: continuity is {continuity!r}, but {what} needs q {wanted} times continuously "
            f"differentiable; give continuity={wanted} or more"
        )
    if elastic.nq != elastic.nv:
        raise ShapeError(f"planning {elastic.name}: it is for joints of one coordinate, whose rates are the velocities")
    function(elastic, "elastic_flat_map", order=int(rate))


def flat_expressions(
    elastic: ElasticRobot, q: list[ca.MX], sigma: Sequence[ca.MX] | None = None, rate: bool = False,
    derivatives: str = "ad",
) -> FlatMotion:  # fmt: skip
    """FlatMotion of expressions [q, v, ...] and [sigma, dsigma, ...]; derivatives as of flat_motion."""
    one_of("kind of derivatives", derivatives, ("ad", "analytic"))
    flat = function(elastic, "elastic_flat_map", order=int(rate))
    given = dict(zip([n for n in flat.name_in() if "sigma" not in n], q, strict=False))
    sigma = list(sigma or [])
    given |= dict(zip([n for n in flat.name_in() if "sigma" in n], sigma, strict=False))
    missing = [n for n in flat.name_in() if n not in given]
    if missing:
        raise ShapeError(f"planning {elastic.name}: the flat map needs {', '.join(missing)} besides; give sigma=[...]")
    if derivatives == "analytic":
        inside = analytic_flat_map(elastic, int(rate)).call([given[n] for n in flat.name_in()], True, False)
        out = dict(zip(flat.name_out(), inside, strict=True))
    else:
        out = flat(**given)
    deflection = out["theta"] - ca.vertcat(*(q[0][i] for i in deflected(elastic)))
    return FlatMotion(q, out["theta"], out["dtheta"], out["tau_m"], out["dtau_m"] if rate else None, deflection, sigma)
