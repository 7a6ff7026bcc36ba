"""Plans of elastic robots whose links keep the pairs of a scene apart.

As for rigid robots, `oc_dyn/planning/among.py`: the plan without obstacles comes first, searches begin from ways round
what is hit, pairs enter when they come near, and what is kept is proven.
"""

from dataclasses import replace

import numpy as np

from ..errors import SolveError
from ..interrupts import TIME_LIMIT
from ..planning.among import MORE, NEAR, SECONDS, SEEDS, blocked
from ..planning.clearance import KEPT
from ..planning.obstacles import ROUNDING, SPARE, along, asked_more, configurations, reduced, told_of
from ..planning.sampled_start import ways
from .plan_search import search

_ROUNDS = 8


def search_among(task, around, solver, solver_options, compiled):
    """ElasticPlan of an ElasticTask in which Obstacles are kept off. Raises SolveError that names the pairs."""
    plan = search(task, solver, solver_options, compiled)
    seen = along(around, plan.motion)
    if not seen.short.any():
        plan.info |= told_of(seen)
        return plan
    failed = None
    for start in _starts(task, around, plan.motion):
        try:
            return _kept_off(replace(task, around=around, **start), around, solver, solver_options, compiled)
        except SolveError as error:
            if error.status == TIME_LIMIT:
                raise
            failed = error
    text = f"planning {task.elastic.name}: no motion was found that keeps the clearance: {blocked(around, seen)}"
    raise SolveError(f"{text}; the last search: {failed}", failed.status, trajectory=failed.trajectory)


def _starts(task, around, motion):
    for way in ways(around, *task.ends, task.limits.q, SEEDS, SECONDS):
        yield {"way": way}
    yield {"known": motion}


def _kept_off(task, around, solver, solver_options, compiled):
    """The plan of rounds with the pairs that are near."""
    near = around.near(task.way if task.known is None else configurations(task.known), NEAR)
    ends = around.missing(np.array(task.ends)).max(axis=0)
    spare = np.clip(-ends - 2 * ROUNDING, -around.smoothed - 2 * KEPT, SPARE)
    for _ in range(_ROUNDS):
        given = {} if not near.any() else {
            "near": reduced(around.scene, near), "apart": (around.wanted + spare)[near]}  # fmt: skip
        plan = search(replace(task, **given), solver, solver_options, compiled)
        seen = along(around, plan.motion)
        if not seen.short.any():
            plan.info |= told_of(seen)
            return plan
        spare = asked_more(spare, seen.short & near, seen)
        if (seen.short & ~near).any():
            near = near | seen.short | around.near(configurations(plan.motion), MORE)
        task = replace(task, way=None, known=plan.motion)
    text = f"after {_ROUNDS} rounds the clearance is not kept between nodes: {blocked(around, seen)}; use more nodes"
    raise SolveError(text, "clearance", trajectory=plan.motion)
