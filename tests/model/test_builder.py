"""Robots written in code: what the builder makes, and what it refuses, naming the culprit at once."""

import warnings

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import ModelError, ModelWarning, ShapeError, UnknownName
from oc_dyn.model.builder import RobotBuilder

TENSOR = np.array([[0.05, 0.004, -0.003], [0.004, 0.06, 0.002], [-0.003, 0.002, 0.04]])
R_POSITIVE = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])


def arm(**last):
    b = RobotBuilder("arm")
    b.add_link("base")
    b.add_body("upper", "revolute", "base", joint="j1", mass=2.0, com=(0, 0, 0.2), inertia=TENSOR, axis=(0, 1, 0))
    b.add_body("lower", "revolute", "upper", joint="j2", mass=1.0, xyz=(0, 0, 0.4), axis=(0, 1, 0), **last)
    return b


def test_a_robot_from_links_and_joints_in_any_order():
    b = RobotBuilder("arm", gravity=(9.81, 0, 0))
    b.add_joint("j2", "prismatic", parent="upper", child="lower", xyz=(0, 0, 0.4), lower=-0.1, upper=0.2, effort=50)
    b.add_link("lower", mass=1.0)
    b.add_joint("j1", "revolute", parent="base", child="upper", rpy=(0, 0, np.pi / 2), velocity=2, jerk=100)
    b.add_link("upper", mass=2.0, com=(0, 0, 0.2), inertia=TENSOR)
    b.add_link("base", mass=5.0)
    r = b.build()
    assert [j.name for j in r.joints] == ["j1", "j2"]
    assert [x.name for x in r.bodies] == ["upper", "lower"]
    assert (r.nq, r.nv, r.total_mass, r.root) == (2, 2, 3.0, "base")
    assert r.base_parts.mass == 5.0
    np.testing.assert_array_equal(r.gravity, [9.81, 0, 0])
    np.testing.assert_allclose(r.bodies[0].rotation, R_POSITIVE, atol=1e-15)
    np.testing.assert_array_equal(r.limit("lower"), [-np.inf, -0.1])
    np.testing.assert_array_equal(r.limit("velocity"), [2, np.inf])
    np.testing.assert_array_equal(r.limit("effort"), [np.inf, 50])
    np.testing.assert_array_equal(r.limit("jerk"), [100, np.inf])


def test_inertia_is_about_the_centre_of_mass_in_either_form():
    b = RobotBuilder("forms")
    b.add_link("base")
    b.add_body("a", "free", "base", mass=2.0, com=(0.1, 0.2, 0.3), inertia=TENSOR)
    six = (0.05, 0.004, -0.003, 0.06, 0.002, 0.04)
    b.add_body("b", "free", "base", mass=2.0, com=(0.1, 0.2, 0.3), inertia=six)
    first, second = (x.inertia for x in b.build().bodies)
    np.testing.assert_allclose(first.tensor_com, TENSOR, atol=1e-15)
    np.testing.assert_array_equal(first.parameters, second.parameters)
    # about the link's origin, by hand: I + m (c.c 1 - c c')
    c = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(first.tensor, TENSOR + 2 * (c @ c * np.eye(3) - np.outer(c, c)), atol=1e-15)


def test_rotation_and_rpy_are_the_same_turn():
    a, c = arm(rotation=R_POSITIVE).build(), arm(rpy=(0, 0, np.pi / 2)).build()
    np.testing.assert_allclose(a.bodies[1].rotation, c.bodies[1].rotation, atol=1e-15)


@pytest.mark.parametrize(
    "kind, nq, nv",
    [("revolute", 1, 1), ("continuous", 1, 1), ("prismatic", 1, 1), ("helical", 1, 1)]
    + [("spherical", 4, 3), ("planar", 3, 3), ("free", 7, 6), ("fixed", 0, 0)],
)
def test_every_kind(kind, nq, nv):
    b = RobotBuilder("one")
    b.add_link("base")
    b.add_body("load", kind, "base", mass=1.0, **({"pitch": 0.02} if kind == "helical" else {}))
    r = b.build()
    assert (r.nq, r.nv, len(r.bodies)) == (nq, nv, 1 if nv else 0)


def test_frames_have_no_mass_and_no_coordinate():
    b = arm()
    b.add_frame("tool", "lower", xyz=(0, 0, 0.3), rpy=(0, 0, np.pi / 2))
    r = b.build()
    assert r.nq == 2
    assert r.total_mass == 3.0
    tool = r.frame("tool")
    assert tool.body == 2
    np.testing.assert_array_equal(tool.translation, [0, 0, 0.3])
    np.testing.assert_allclose(tool.rotation, R_POSITIVE, atol=1e-15)


def test_rotor_inertia_counts_with_the_square_of_the_ratio():
    plain, geared = arm(), arm(rotor_inertia=1e-4, gear_ratio=100.0, armature=0.5)
    M = [np.array(od.function(b.build(), "mass_matrix")(q=[0.3, 0.4])["M"]) for b in (plain, geared)]
    np.testing.assert_allclose(M[1] - M[0], [[0, 0], [0, 1.5]], atol=1e-12)
    assert arm(rotor_inertia=0.2).build().joint("j2").armature == 0.2


def test_mimic_forms():
    for rule, want in (("j1", ("j1", 1.0, 0.0)), (("j1", -0.5), ("j1", -0.5, 0.0)), (("j1", 2, 0.1), ("j1", 2.0, 0.1))):
        m = arm(mimic=rule).build().mimics[0].mimic
        assert (m.joint, m.multiplier, m.offset) == want


def test_build_options():
    b = arm()
    floating = b.build(floating_base=True)
    assert (floating.nq, floating.nv, floating.joints[0].name) == (9, 8, "root_joint")
    locked = b.build(lock={"j1": 0.3})
    assert [j.name for j in locked.joints] == ["j2"]
    with pytest.raises(UnknownName, match="'j9'.*j1"):
        b.build(lock={"j9": 0.0})


def test_a_built_robot_does_not_change_with_its_builder():
    b = arm()
    first = b.build()
    b.add_body("hand", "revolute", "lower", mass=1.0)
    assert first.locked({"j1": 0.0}).nq == 1
    assert b.build().nq == 3


def add_link(**values):
    return lambda b: b.add_link("x", **values)


def add_joint(kind="revolute", **values):
    return lambda b: b.add_joint("j3", kind, "lower", "x", **values)


@pytest.mark.parametrize(
    "step, error, words",
    [
        (lambda b: b.add_link("upper"), ModelError, "arm: link 'upper' is defined more than once"),
        (lambda b: b.add_joint("j1", "fixed", "upper", "x"), ModelError, "joint 'j1' is defined more than once"),
        (lambda b: b.add_body("upper", "fixed", "base"), ModelError, "link 'upper' is defined more than once"),
        (lambda b: b.add_link(""), ModelError, "name of a link is ''"),
        (lambda b: b.add_link(7), ModelError, "name of a link is 7"),
        (add_link(mass=-1), ModelError, "link 'x': mass is -1"),
        (add_link(mass=np.nan), ModelError, "link 'x': mass is nan"),
        (add_link(mass=np.inf), ModelError, "link 'x': mass is inf"),
        (add_link(mass="heavy"), ModelError, "link 'x': mass is 'heavy'"),
        (add_link(mass=1, com=(0, 0)), ShapeError, "link 'x': com: got [0.0, 0.0]"),
        (add_link(mass=1, com=(0, 0, np.nan)), ShapeError, "link 'x': com"),
        (add_link(mass=1, com=("a", 0, 0)), ShapeError, "link 'x': com"),
        (add_link(mass=1, inertia=(1, 1, 1)), ShapeError, "link 'x': inertia: got shape (3,)"),
        (add_link(mass=1, inertia=0.1), ShapeError, "link 'x': inertia: got shape ()"),
        (add_link(mass=1, inertia=np.eye(3) * np.nan), ModelError, "link 'x': inertia is"),
        (add_link(mass=1, inertia=[[1, 0.1, 0], [0, 1, 0], [0, 0, 1]]), ModelError, "'x': inertia is not symmetric"),
        (add_joint("ball"), ModelError, "joint 'j3' has kind 'ball'; supported: fixed, revolute, continuous"),
        (add_joint("helical"), ModelError, "joint 'j3' is helical and needs pitch"),
        (add_joint("helical", pitch=np.inf), ModelError, "joint 'j3': pitch is inf"),
        (add_joint(pitch=0.1), ModelError, "joint 'j3' is revolute; only a helical joint has a pitch"),
        (add_joint(axis=(0, 0, 0)), ModelError, "joint 'j3': its axis is zero"),
        (add_joint(axis=(0, 1)), ShapeError, "joint 'j3': axis"),
        (add_joint("spherical", axis=(0, 0, 1)), ModelError, "joint 'j3' is spherical and has no axis"),
        (add_joint("free", lower=0.0), ModelError, "joint 'j3' is free; only joints of one coordinate have limits"),
        (add_joint("continuous", upper=1.0), ModelError, "joint 'j3' is continuous"),
        (add_joint(lower=1, upper=-1), ModelError, "joint 'j3': lower limit 1 is above the upper limit -1"),
        (add_joint(velocity=-2), ModelError, "joint 'j3': limit velocity is -2"),
        (add_joint(effort=np.nan), ModelError, "joint 'j3': limit effort is nan"),
        (add_joint(xyz=(1, 2)), ShapeError, "joint 'j3': xyz: got [1.0, 2.0]"),
        (add_joint(rpy=(1, 2, 3), rotation=np.eye(3)), ModelError, "joint 'j3': both rpy and rotation"),
        (add_joint(rotation=np.eye(4)), ShapeError, "joint 'j3': rotation: got shape (4, 4)"),
        (add_joint(rotation=-np.eye(3)), ModelError, "joint 'j3': rotation is not a rotation matrix"),
        (add_joint(rotation=np.eye(3) * np.nan), ModelError, "joint 'j3': rotation is not a rotation matrix"),
        (add_joint(armature=-1.0), ModelError, "joint 'j3': armature is -1"),
        (add_joint(gear_ratio=3.0), ModelError, "joint 'j3': gear_ratio is given without rotor_inertia"),
        (add_joint("free", damping=1.0), ModelError, "joint 'j3' is free and cannot have damping"),
        (add_joint(mimic=(1.0, "j1")), ModelError, "joint 'j3': mimic is (1.0, 'j1')"),
        (add_joint(mimic=("j1", np.nan)), ModelError, "joint 'j3': mimic"),
    ],
)
def test_what_is_refused_at_once(step, error, words):
    b = arm()
    with pytest.raises(error) as caught:
        step(b)
    assert words in str(caught.value)
    assert b.build().nq == 2  # nothing half done is left behind


@pytest.mark.parametrize(
    "step, words",
    [
        (lambda b: b.add_link("loose"), ["2 root links", "'base'", "'loose'"]),
        (lambda b: b.add_joint("j3", "revolute", "lowe", "lower"), ["'j3'", "'lowe'", "did you mean 'lower'"]),
        (lambda b: b.add_joint("j3", "revolute", "lower", "base"), ["loop"]),
        (lambda b: b.add_joint("j3", "revolute", "base", "lower"), ["'lower'", "two joints", "'j2'", "'j3'"]),
        (lambda b: b.add_body("hand", "revolute", "lower", mimic="j7"), ["'hand_joint'", "'j7'", "does not exist"]),
    ],
)
def test_what_build_refuses(step, words):
    b = arm()
    step(b)
    with pytest.raises(ModelError) as caught:
        b.build()
    assert all(w in str(caught.value) for w in words), str(caught.value)


def test_impossible_inertia_warns_and_is_reported():
    b = arm()
    with pytest.warns(ModelWarning, match="link 'plate': no real body"):
        b.add_body("plate", "fixed", "lower", mass=1.0, inertia=np.diag([0.1, 0.1, 0.3]))
    with pytest.warns(ModelWarning, match="link 'ghost': it has no mass but an inertia"):
        b.add_body("ghost", "fixed", "lower", inertia=np.diag([0.1, 0.1, 0.1]))
    r = b.build()
    assert len(r.report) == 2
    assert "plate" in r.report[0]
    assert "note: link 'plate'" in str(r)
    assert r.locked({"j1": 0.1}).report == r.report
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        b.add_body("rod", "fixed", "lower", mass=1.0, inertia=np.diag([0.1, 0.1, 0.0]))  # slender, still real
        b.add_body("point", "fixed", "lower", mass=1.0)


# -- the table ------------------------------------------------------------------------------------------------


def columns(text):
    import unicodedata

    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def test_table_names_everything():
    b = RobotBuilder("hand")
    b.add_link("palm")
    b.add_body("thumb", "revolute", "palm", mass=0.25, lower=-0.5, upper=1.25, velocity=3, effort=7, acceleration=9)
    b.add_body("finger", "revolute", "thumb", mass=0.5, mimic=("thumb_joint", -0.5, 0.01))
    b.add_body("ball", "spherical", "finger", mass=1.0)
    b.add_frame("tip", "ball")
    text = str(b.build())
    lines = text.splitlines()
    assert lines[0] == ("hand: nq = 5, nv = 4, 3 bodies, total mass 1.75 kg, gravity (0, 0, -9.81) m/s^2, base fixed")
    assert lines[4].split() == "1 thumb ground thumb_joint revolute 0 0 0.25 -0.5 .. 1.25 3 7".split()
    assert lines[5].split() == "2 finger thumb finger_joint revolute *0 *0 0.5 - - -".split()
    assert lines[6].split() == "3 ball finger ball_joint spherical 1-4 1-3 1 - - -".split()
    assert "(w, x, y, z)" in text
    assert "* mimic: finger_joint = -0.5 * thumb_joint + 0.01" in text
    assert "acceleration limits: 9, -, -, -" in text
    assert "5 frames: palm, thumb, finger, ball, tip" in text
    assert text.isascii()
    assert "base floating" in str(b.build(floating_base=True))
    assert "(w, x, y, z)" not in str(b.build(lock={"ball_joint": [1, 0, 0, 0]}))


def test_table_stays_narrow_and_aligned_with_any_names():
    b = RobotBuilder("Gelenkroboter_α")
    b.add_link("関節の土台")
    parent = "関節の土台"
    for i in range(60):
        name = f"関節_α_with_a_rather_long_name_{i}"
        b.add_body(name, "revolute", parent, mass=1.0, lower=-1, upper=1)
        parent = name
    lines = str(b.build()).splitlines()
    rule = next(i for i, line in enumerate(lines) if line.startswith("--"))
    assert max(columns(line) for line in lines) <= 110
    assert {columns(line) for line in lines[rule + 1 : rule + 61]} == {columns(lines[rule])}
    assert "61 frames: " in str(b.build())
    assert "and 1 more" in str(b.build())


def test_table_of_a_robot_that_cannot_move():
    b = RobotBuilder("rock")
    b.add_link("rock", mass=3.0)
    assert "no moving body" in str(b.build())
    assert "1 body, total mass 3 kg" in str(b.build(floating_base=True))
