"""Springs that an SDF file gives its joints, as springs between motors and links."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import elastic as el

_INERTIA = "<inertial><mass>2</mass><pose>0 0 -0.1 0 0 0</pose><inertia><ixx>.02</ixx><iyy>.02</iyy><izz>.01</izz>"
_LINK = "<link name='{0}'><pose>0 0 {1} 0 0 0</pose>" + _INERTIA + "</inertia></inertial></link>"
_JOINT = """<joint name='{0}' type='revolute'><parent>{1}</parent><child>{2}</child><axis><xyz>0 1 0</xyz>
<dynamics>{3}</dynamics></axis></joint>"""
_SPRING = "<spring_stiffness>{0}</spring_stiffness><spring_reference>{1}</spring_reference>"


def leg():
    """A pelvis with a leg whose knee and ankle have springs, as Cassie's have."""
    places = {"pelvis": 0, "thigh": 0, "shin": -0.3, "foot": -0.6}
    links = "".join(_LINK.format(*place) for place in places.items())
    joints = _JOINT.format("hip", "pelvis", "thigh", "")
    joints += _JOINT.format("knee", "thigh", "shin", _SPRING.format(800, 0))
    joints += _JOINT.format("ankle", "shin", "foot", _SPRING.format(500, 0.2))
    return f"<sdf version='1.9'><model name='leg'>{links}{joints}</model></sdf>"


def test_springs_of_a_file_make_its_joints_elastic():
    robot, springs = od.load_sdf(leg(), floating_base=True), od.sdf_springs(leg())
    elastic = el.elastic_robot(robot, springs, motor_inertia={"knee": 0.1, "ankle": 0.05})
    assert [j.name for j in elastic.joints] == ["knee", "ankle"]
    assert elastic.linear_stiffness().tolist() == [800, 500]
    assert elastic.motor_names == ("hip", "knee", "ankle")
    same = el.elastic_robot(robot, {"knee": 800.0, "ankle": 500.0}, motor_inertia={"knee": 0.1, "ankle": 0.05})
    x = np.random.default_rng(0).normal(size=el.plant(elastic).size)
    x[:4] = 1, 0, 0, 0
    assert np.array_equal(*(np.array(el.plant(e).rates(x, [1, 2, 3], [])) for e in (elastic, same)))


def test_the_motor_at_the_reference_gives_the_files_torque():
    """torque = stiffness (reference - q) in SDF: theta is the reference."""
    robot, springs = od.load_sdf(leg()), od.sdf_springs(leg())
    elastic = el.elastic_robot(robot, springs, motor_inertia={"knee": 0.1, "ankle": 0.05})
    q = np.array([0.1, -0.3, 0.5])
    x = np.concatenate([q, np.zeros(3), [s.reference for s in springs], np.zeros(2)])
    torque = np.ravel(el.plant(elastic).springs(x, [])[1])
    assert torque == pytest.approx([s.stiffness * (s.reference - y) for s, y in zip(springs, q[1:], strict=True)])


def test_springs_of_other_joints_and_two_of_one_are_refused():
    springs = od.sdf_springs(leg())
    with pytest.raises(od.UnknownName, match="knee"):
        el.elastic_robot(od.robots.planar_2r(), springs, motor_inertia=0.1)
    with pytest.raises(od.ModelError, match="'knee' has two springs"):
        el.elastic_robot(od.load_sdf(leg()), springs + springs[:1], motor_inertia=0.1)
