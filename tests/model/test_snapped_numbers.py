"""Numbers that the canonical form takes as exact: which, by how much, and none with snap_angles=0."""

import warnings

import numpy as np
import pytest
from samples import example_robot, relative
from test_canonical import poses_as_written

import oc_dyn as od

LENGTH = 7e-13
TEN_DIGITS = 1.5707963267  # 9.5e-11 from a quarter turn
FILES = {
    "tiago": "tiago_description/robots/tiago.urdf",
    "ur5": "ur_description/urdf/ur5_robot.urdf",
    "icub": "icub_description/robots/icub_reduced.urdf",
}


def nearly_straight():
    """Quarter turns written with ten digits, an axis and a length that are almost along one."""
    b = od.RobotBuilder("nearly")
    b.add_link("base")
    for k, axis in enumerate([(0, 0, 1), (0, 9e-13, 1), (1, 0, 0)]):
        parent = f"l{k - 1}" if k else "base"
        b.add_body(f"l{k}", "revolute", parent, mass=1, com=(0.1, 0.2, 0.3), inertia=np.diag([0.1, 0.2, 0.25]),
                   xyz=(LENGTH, 0.1, 0.3), rpy=(TEN_DIGITS, 0, 0), axis=axis)  # fmt: skip
    return b.build()


def worst_pose(robot, written):
    q = np.array([0.3, -0.7, 1.1])
    poses = list(poses_as_written(written, q).values())[1:]
    off = [0.0]
    for body, (R, p) in zip(robot.bodies, poses, strict=True):
        found = od.function(robot, "frame_pose", frame=body.name)(q=q)
        off += [np.abs(found["R"].full() - R).max(), np.abs(found["p"].full() - p).max()]
    return max(off)


@pytest.fixture
def exact_axes(monkeypatch):
    """The oracle's axes as they are written."""
    from oc_dyn.lie.so3 import axis_frame

    monkeypatch.setattr("test_canonical.axis_frame", lambda axis: axis_frame(axis, 0.0))


def test_nothing_is_snapped_at_zero(exact_axes):
    r = nearly_straight()
    assert worst_pose(r.with_snapped_angles(0), r) < 4e-16


def test_what_is_snapped_unless_told(exact_axes):
    r = nearly_straight()
    assert r.snap_angles == 1e-9
    assert 5e-11 < worst_pose(r, r) < 1e-9


def test_snapping_below_the_default(exact_axes):
    r = nearly_straight()
    assert 1e-13 < worst_pose(r.with_snapped_angles(1e-11), r) < 5e-12  # the length and the axis alone


def test_variants_keep_the_choice():
    r = nearly_straight().with_snapped_angles(0)
    assert r.locked({"l0_joint": 0.1}).snap_angles == 0
    assert r.with_payload("l2", od.Inertia.from_com(1.0)).snap_angles == 0
    assert r.with_gravity((0, 0, 0)).snap_angles == 0


def test_a_file_is_read_as_it_is_with_zero():
    text = (
        f'<robot name="r"><link name="a"/><link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/>'
        f'</inertial></link><joint name="j" type="continuous"><parent link="a"/><child link="b"/>'
        f'<origin rpy="{TEN_DIGITS} 0 0" xyz="{LENGTH} 0 0"/></joint></robot>'
    )
    at = {snap: od.function(od.load_urdf(text, snap_angles=snap), "frame_pose", frame="b")(q=0) for snap in (0, 1e-9)}
    assert at[0]["p"].full().ravel().tolist() == [LENGTH, 0, 0]
    assert at[0]["R"].full()[1, 1] == pytest.approx(np.cos(TEN_DIGITS), rel=1e-14)
    assert not at[1e-9]["p"].full().any()
    assert at[1e-9]["R"].full()[1, 1] == 0


@pytest.mark.slow
def test_the_report_says_what_is_taken_as_exact():
    r = nearly_straight()
    assert "taken as exact: rotation entries within 1e-09 of 0 or 1, lengths and" in r.canonical_report()
    assert "within 1e-12 of 0; results may differ by as much" in r.canonical_report()
    assert "taken as exact: nothing" in r.with_snapped_angles(0).canonical_report()


def test_no_hint_to_snap_where_nothing_would_be():
    assert "few digits" not in nearly_straight().with_snapped_angles(0).canonical_report()


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", FILES)
def test_real_robots_equal_pinocchio_to_rounding(name):
    pin = pytest.importorskip("pinocchio")
    path = example_robot(FILES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", od.ModelWarning)
        robot = od.load_urdf(path, snap_angles=0)
    model = pin.buildModelFromUrdf(str(path))
    theirs, data = od.interop.to_pinocchio(robot, model), model.createData()
    M, tau = (od.function(robot, x) for x in ("mass_matrix", "inverse_dynamics"))
    for seed in range(3):
        q = robot.random_configuration(seed)
        v, dv = np.random.default_rng(seed).normal(size=(2, robot.nv))
        P = theirs.velocity_matrix(q)
        crba = pin.crba(model, data, theirs.q(q))
        crba = P.T @ (np.triu(crba) + np.triu(crba, 1).T) @ P
        rnea = theirs.from_tau(pin.rnea(model, data, theirs.q(q), theirs.v(v), theirs.dv(dv)), theirs.q(q))
        scale = np.sqrt(np.outer(np.diag(crba), np.diag(crba)))
        assert np.abs((M(q=q)["M"].full() - crba) / scale).max() < 2e-14
        assert relative(tau(q=q, v=v, dv=dv)["tau"].full().ravel(), rnea) < 1e-14
