"""Forward dynamics by articulated inertias of clusters: as by the mass matrix, and linear in the bodies."""

import numpy as np
import pytest
from loops.linkages import NAMES, all_of, largest, linkage, state, three_rods

from oc_dyn.function import function
from oc_dyn.loops.clusters import clusters_of, is_clustered
from oc_dyn.loops.embedding import at_tree
from oc_dyn.registry import get
from oc_dyn.study.loops import embedded, linkages


def forward(robot, order, clustered):
    record = get("forward_dynamics")
    options = {"external_wrenches": False, "friction": False, "parameters": None, "motors": None}
    ports = record.inputs(robot, order, options), record.outputs(robot, order, options)
    return at_tree(robot, "forward_dynamics", order, None, *ports, {**options, "clustered": clustered}, function)


def crossed():
    """A second loop on the first one's rods, so that it hangs on several bodies."""
    b = three_rods("crossed")
    rod = {"mass": 1.0, "com": (0.1, 0, 0.02), "inertia": np.diag([1e-3] * 3), "axis": (0, 1, 0)}
    b.add_body("d", "revolute", "a", xyz=(0.15, 0, 0), **rod)
    b.add_body("e", "revolute", "c", xyz=(0.1, 0, 0.1), **rod)
    b.add_body("f", "revolute", "e", xyz=(0.2, 0, 0), **rod)
    b.close_loop("first", "b", "c", xyz_a=(0.6, 0, 0), xyz_b=(0.5, 0, 0), axis=(0, 1, 0), independent=("a_joint",))
    b.close_loop("second", "d", "f", xyz_a=(0.4, 0, 0), xyz_b=(0.2, 0, 0), axis=(0, 1, 0))
    return b.build(start={"a_joint": -1.0, "b_joint": 0.5, "c_joint": -1.2})


def far():
    """A coupling past a joint that is none of it."""
    b = three_rods("far")
    b.couple("b_joint", "a_joint", lambda x: 0.3 * x[0] ** 2)
    b.add_body("g", "revolute", "b", xyz=(0.2, 0, 0), mass=1.0, com=(0.1, 0, 0), inertia=np.diag([1e-3] * 3))
    b.add_body("h", "revolute", "g", xyz=(0.2, 0, 0), mass=1.0, com=(0.1, 0, 0), inertia=np.diag([1e-3] * 3))
    b.couple("h_joint", "a_joint", lambda x: x[0] + 0.1)
    return b.build()


@pytest.mark.sample("four_bar")
@pytest.mark.parametrize("name", [*NAMES, "crossed", "far"])
def test_as_by_the_mass_matrix(name):
    robot = globals()[name]() if name in globals() else linkage(name)
    q, V = state(robot, 1)
    x = all_of(robot, q, V)[0]
    given = [x, V[0], *np.random.default_rng(1).normal(size=(2, robot.nv))]
    found, wanted = (forward(robot, 1, way).call(given) for way in (True, False))
    assert max(largest(a, b) for a, b in zip(found, wanted, strict=True)) < 1e-9


def test_clusters_are_the_loops():
    robot = linkages(3)
    assert [len(c.bodies) for c in clusters_of(robot)] == [3, 3, 3]
    assert [c.on for c in clusters_of(robot)][0] == 0
    assert len(clusters_of(linkage("six_bar"))) == 1  # its loops share the rocker
    assert [len(c.own) for c in clusters_of(linkage("floating_leg"))] == [6, 1, 1]
    assert sorted(len(c.bodies) for c in clusters_of(far())) == [1, 4]


@pytest.mark.slow
def test_growth_is_linear():
    for quantity in ("inverse_dynamics", "forward_dynamics"):
        a, b, c = (embedded(linkages(n), quantity, True).n_instructions() for n in (2, 4, 6))
        assert abs((c - b) - (b - a)) < 0.02 * (b - a)


@pytest.mark.slow
def test_the_way_with_fewer_instructions_is_taken():
    assert is_clustered(linkages(8))
    assert not is_clustered(linkage("floating_leg"))
    few = linkages(8)
    chosen = embedded(few, "forward_dynamics").n_instructions()
    assert chosen == embedded(few, "forward_dynamics", True).n_instructions()
    assert chosen < embedded(few, "forward_dynamics", False).n_instructions()
