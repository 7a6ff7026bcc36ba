"""Objects that are picked up, carried and put down from plan to plan, and names in pairs left out that nobody has."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from obstacles import TIP, at, ball, point_robot

import oc_dyn as od
from oc_dyn import shapes

CUP, POST, CLEARANCE = 0.15, 0.2, 0.02


def planned(scene, start, goal):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.CheckWarning)
        return od.plan_point_to_point(
            point_robot(), start, goal, scene=scene, clearance=CLEARANCE if scene else 0.0, continuity=2, nodes=24,
            progress=False,
        )  # fmt: skip


@pytest.mark.slow
def test_a_cup_is_fetched_carried_round_a_post_and_left():
    """The cup reaches farther from the way than the tip: carried, it needs more room, and left it is in the way."""
    begin, grasp, goal = np.array([-1.5, 0.3]), np.array([-1.0, 0.05]), np.array([1.0, 0.0])
    cup_at = np.array([-1.0, 0.05 + TIP + CUP + CLEARANCE + 0.01])
    scene = od.Scene().attach("tip", "point", shapes.Sphere(TIP)).add("post", shapes.Sphere(POST))
    scene = scene.add("cup", shapes.Sphere(CUP), at(*cup_at))
    robot = point_robot()
    there = planned(scene, begin, grasp)
    q = there.sample(1e-3).q
    assert np.linalg.norm(q - cup_at, axis=1).min() >= TIP + CUP + CLEARANCE - 1e-6

    carried = scene.attached("cup", "point", at(*(cup_at - grasp)))
    assert {frozenset(x) for x in carried.pairs} == {frozenset(x) for x in (("tip", "post"), ("cup", "post"))}
    apart = od.scene.exact_distances(robot, carried, grasp[None], which=[carried.pairs.index(("post", "cup"))])
    assert apart.item() == pytest.approx(np.linalg.norm(cup_at) - CUP - POST, abs=1e-9)  # it is where it was
    moved = planned(carried, grasp, goal)
    q = moved.sample(1e-3).q
    assert np.linalg.norm(q + (cup_at - grasp), axis=1).min() >= CUP + POST + CLEARANCE - 1e-6
    assert np.linalg.norm(q, axis=1).min() >= TIP + POST + CLEARANCE - 1e-6
    assert moved.info["clearance"]["certified"] >= CLEARANCE - 1e-6
    alone = planned(None, grasp, goal).sample(1e-3).q
    assert np.linalg.norm(alone + (cup_at - grasp), axis=1).min() < CUP + POST

    left = carried.released("cup", at(*(goal + cup_at - grasp)))
    assert left["cup"].link is None
    assert frozenset(("tip", "cup")) in {frozenset(x) for x in left.pairs}
    away = planned(left, goal, [1.0, 0.9])
    q = away.sample(1e-3).q
    assert np.linalg.norm(q - (goal + cup_at - grasp), axis=1).min() >= TIP + CUP + CLEARANCE - 1e-6


def misspelt():
    """A scene as one from a file that was written by hand: nobody has the name."""
    return replace(ball(), left_out=frozenset([frozenset(("tip", "dics"))]))


def test_names_that_nobody_has_are_refused():
    robot = point_robot()
    motion = planned(ball(), [-1.0, 0.6], [1.0, 0.6])
    ocp = od.Problem(nodes=5, duration=1.0)
    q = ocp.state("q", 2)
    text = "pair that the scene leaves out.*dics"
    for looked in (
        lambda: motion.clearance(misspelt()),
        lambda: motion.check(scene=misspelt()),
        lambda: ocp.avoid(misspelt(), q, robot=robot),
        lambda: od.plan_point_to_point(robot, [-1, 0.6], [1, 0.6], scene=misspelt()),
    ):
        with pytest.raises(od.UnknownName, match=text):
            looked()
    assert motion.clearance(ball().leave_out(("tip", "disc"))).certified == np.inf
