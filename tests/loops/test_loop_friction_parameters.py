"""Friction of robots with loops: as a parameter, and where all joints follow a prescribed motion."""

import functools

import numpy as np
import pytest
from loops.linkages import largest

import oc_dyn as od


@functools.cache
def rough(share=1.0):
    """A four-bar linkage with friction and rotors at all joints; share: of the damping."""
    b = od.RobotBuilder("rough")
    b.add_link("base")
    rod = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": np.diag([1e-3] * 3), "axis": (0, 1, 0)}
    b.add_body("l1", "revolute", "base", joint="a", damping=0.3 * share, friction=0.2, armature=0.1, **rod)
    b.add_body("l2", "revolute", "l1", joint="b", xyz=(0.3, 0, 0), damping=0.5 * share, armature=0.2, **rod)
    b.add_body("l3", "revolute", "base", joint="c", xyz=(0.7, 0, 0), damping=0.7 * share, friction=0.1, **rod)
    b.close_loop("pin", "l2", "l3", xyz_a=(0.8, 0, 0), xyz_b=(0.6, 0, 0), axis=(0, 1, 0), independent=("a",))
    return b.build(start={"a": -1.0, "b": 0.5, "c": -1.2})


FORWARD = [("forward_dynamics", {}), ("hybrid_dynamics", {"prescribed": ("a",)}), ("inverse_dynamics", {})]


@pytest.mark.sample(1)
@pytest.mark.parametrize("parts", [("viscous",), ("inertia", "armature", "viscous")])
@pytest.mark.parametrize("quantity, options", FORWARD)
def test_viscous_friction_as_a_parameter_is_that_of_another_robot(quantity, options, parts):
    robot, other = rough(), rough(2.5)
    f = od.function(robot, quantity, parameters=parts, friction=True, **options)
    g = od.function(other, quantity, friction=True, **options)
    values = {p: 0.7 for p in g.name_in()} | {"q": -0.8, "v": 1.3}
    if "tau_f" in values:
        values["tau_f"] = np.zeros((0, 1))
    found, expected = f(**values, params=other.parameter_values(parts)), g(**values)
    assert max(largest(found[x], expected[x]) for x in expected) < 1e-12
    plain = od.function(robot, quantity, friction=True, **options)(**values)
    assert max(largest(plain[x], expected[x]) for x in expected) > 1e-3


@pytest.mark.parametrize("friction", [False, True])
def test_hybrid_dynamics_of_prescribed_motions_alone_is_inverse_dynamics(friction):
    robot = rough()
    f = od.function(robot, "hybrid_dynamics", prescribed=("a",), friction=friction)
    expected = float(od.function(robot, "inverse_dynamics", friction=friction)(-0.8, 1.3, 0.7))
    found = f(q=-0.8, v=1.3, dv_p=0.7, tau_f=np.zeros((0, 1)))
    assert abs(float(found["tau"]) - expected) < 1e-12
    assert abs(float(found["tau_p"]) - expected) < 1e-12
