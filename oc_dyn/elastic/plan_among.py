"""Plans of elastic robots whose links keep the pairs of a scene apart.

As for rigid robots, `oc_dyn/planning/among.py`: the plan without obstacles comes first, searches begin from ways round
what is hit, pairs enter when they come near, and what is kept is proven.
"""

from dataclasses import replace

import numpy as np

from ..errors import SolveError
from ..interrupts import TIME_LIMIT
from ..planning.among import AS_GOOD, MORE, NEAR, SEEDS, blocked, course_of, passages, ways_past
from ..planning.clearance import KEPT
from ..planning.obstacles import ROUNDING, SPARE, along, asked_more, course, reduced, told_of
from ..planning.sampled_start import ways
from .plan_guess import smooth
from .plan_search import search

_ROUNDS = 8


def search_among(task, around, solver, solver_options, compiled):
    """ElasticPlan of an ElasticTask in which Obstacles are kept off. Raises SolveError that names the pairs."""
    plan = search(task, solver, solver_options, compiled)
    seen = along(around, plan.motion)
    if not seen.short.any():
        plan.info |= told_of(seen)
        return plan
    failed, plans = None, []
    for start in _starts(task, around, plan.motion):
        try:
            plans.append(_kept_off(replace(task, around=around, **start), around, solver, solver_options, compiled))
        except SolveError as error:
            if error.status == TIME_LIMIT and not plans:
                raise
            failed = error
            if error.status == TIME_LIMIT:
                break
        if plans and (not around.scene.timed or plans[-1].objective <= AS_GOOD * plan.objective):
            break  # of what moves it may be quicker to pass in front
    if plans:
        return min(plans, key=lambda x: x.objective)
    text = f"planning {task.elastic.name}: no motion was found that keeps the clearance: {blocked(around, seen)}"
    raise SolveError(f"{text}; the last search: {failed}", failed.status, trajectory=failed.trajectory)


def _starts(task, around, motion):
    if around.scene.timed:
        moving, nodes = replace(task, around=around), {"nodes": task.nodes}
        for start in passages(moving, nodes, task.ends, task.limits.q, _shortest):
            yield {"begun": start}
        for way in ways_past(around, motion, task.ends, task.limits.q):
            yield {"begun": _along(replace(task, way=way, around=None))}
        yield {"known": motion}
        return
    for way in ways(around, *task.ends, task.limits.q, SEEDS):
        yield {"way": way}
    yield {"known": motion}


def _along(task):
    T, derivatives, _ = smooth(task)
    return T, np.array(derivatives)


def _shortest(task, way):
    return smooth(replace(task, way=way))[0]


def _kept_off(task, around, solver, solver_options, compiled):
    """The plan of rounds with the pairs that are near."""
    q, t = (task.way, 0.0) if task.way is not None else course_of(task.begun or task.known)
    near = around.near(q, NEAR, t)
    ends = around.missing_at_ends(np.array(task.ends), task.duration).max(axis=0)
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
            q, t = course(plan.motion)
            near = near | seen.short | around.near(q, MORE, t)
        task = replace(task, way=None, begun=None, known=plan.motion)
    text = f"after {_ROUNDS} rounds the clearance is not kept between nodes: {blocked(around, seen)}; use more nodes"
    raise SolveError(text, "clearance", trajectory=plan.motion)
