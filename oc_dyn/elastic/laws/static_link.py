"""The links' positions at which the springs balance what is wanted of them, from the motors' positions alone.

With motor positions given, K (theta - q) = l(q) has one solution where K outweighs dl/dq: q_bar(theta). What is fed
back of the links at q_bar(theta) in place of q is a function of the motors' positions, which keeps laws passive.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, log
from typing import Any

import casadi as ca

from ...errors import ModelError
from ...validation import count
from ..model import ElasticRobot
from .conditions import at_links, motor_positions

_SHARE = 1e-10  # of its start to which the error of the iteration falls, by default
_MOST = 60  # iterations, by default


def static_links(elastic: ElasticRobot, q: Any, theta: Any, loads: Callable[[Any], Any], start: Any, steps: int) -> Any:
    """q_bar (v,) after some steps of q <- theta - z(l(q)), z the springs' deflections under a load, from `start`; rows
    of rigid joints are those of q."""
    at = motor_positions(elastic, q, theta)
    found = motor_positions(elastic, q, ca.vertcat(*(start[j.v] for j in elastic.joints)))
    for _ in range(steps):
        found = at - at_links(elastic, deflections_under(elastic, loads(found)))
    return found


def deflections_under(elastic: ElasticRobot, torques: Any) -> Any:
    """(theta,) deflections of the springs, of fixed law, under torques (v,)."""
    return ca.vertcat(*(j.spring.deflections([torques[j.v]], [])[0][0] for j in elastic.joints))


def steps_of(name: str, elastic: ElasticRobot, iterations: int | None, ratio: float) -> int:
    """Number of iterations: as given, or such that errors shrink to 1e-10 of themselves where each takes `ratio` of
    them. ModelError where it would take more than 60."""
    if iterations is not None:
        return count(f"{name}: iterations", iterations, 1, 1000)
    steps = ceil(log(_SHARE) / log(ratio)) if 0 < ratio < 1 else 1 if ratio <= 0 else _MOST + 1
    if steps > _MOST:
        raise ModelError(
            elastic.name,
            [
                f"{name}: the iteration for the links' position shrinks errors to {ratio:.3g} of themselves a step: "
                "the springs are too soft for this load; give iterations=, or lower stiffness"
            ],
        )
    return max(steps, 1)
