"""The canonical form: same results in the author's frames, exact zeros, snapped angles only when asked."""

import casadi as ca
import numpy as np
import pytest
from samples import ROBOTS, build, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.lie import se3
from oc_dyn.lie.so3 import axis_frame
from oc_dyn.model import joints as jt
from oc_dyn.model.canonical import canonical


def poses_as_written(r, q):
    """{body: pose} straight from the description, without canonical frames."""
    poses = {0: (np.eye(3), np.zeros((3, 1)))}
    for b in r.bodies:
        j = b.joint
        qj = q[j.q_index : j.q_index + j.nq]
        if j.mimic:
            qj = j.mimic.multiplier * qj + j.mimic.offset
        A = np.eye(3) if j.kind in ("spherical", "free", "transform") else axis_frame(j.axis)
        R, p = (np.array(x, float) for x in jt.displacement(j.kind, qj, j.pitch, j.motion))
        p = p.reshape(3, 1)
        home = b.rotation, b.translation.reshape(3, 1)
        poses[b.index] = se3.compose(poses[b.parent], se3.compose(home, (A @ R @ A.T, A @ p)))
    return poses


@pytest.mark.parametrize("name", list(ROBOTS))
def test_bodies_are_where_the_author_put_them(name):
    r = robot(name)
    q = r.random_configuration(4)
    for body, (R, p) in zip(r.bodies, list(poses_as_written(r, q).values())[1:], strict=True):
        f = od.function(r, "frame_pose", frame=body.name)
        assert relative(f(q=q)["R"], R) < 1e-14
        assert relative(f(q=q)["p"], p) < 1e-14


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_axes_are_z_and_regrouping_only_moves_parameters(name):
    model, regrouped = canonical(robot(name)), canonical(robot(name), regroup=True)
    assert all(p is None or p < i for i, p in enumerate(model.parent))
    for i in model.bodies:
        assert np.allclose(model.R[i] @ model.R[i].T, np.eye(3), atol=1e-9)
    before, after = (np.count_nonzero([x.parameters for x in m.inertia[1:]]) for m in (model, regrouped))
    assert after <= before
    # the same torques come out of the parameters as written
    method = od.registry.get_method("inverse_dynamics", "taylor").function
    f = od.function(robot(name), "inverse_dynamics", order=1)
    ports = random_ports(f, robot(name))
    q, *V = [np.array(x) for x in ports.values()]
    tau = method(model, 1, ca.DM(q), [ca.DM(x) for x in V])
    assert relative(tau[1], f(**ports)["dtau"]) < 1e-12


def few_digits():
    b = od.RobotBuilder("short")
    b.add_link("base")
    for k in range(3):
        b.add_body(f"l{k}", "revolute", f"l{k - 1}" if k else "base", joint=f"j{k}", mass=1, com=(0.1, 0.2, 0.3),
                   inertia=np.diag([0.1, 0.2, 0.25]), xyz=(0, 0.1, 0.3), rpy=(1.5708, 0, 0))  # fmt: skip
    return b.build()


@pytest.mark.slow
def test_angles_are_snapped_only_when_asked():
    r = few_digits()
    snapped = r.with_snapped_angles(1e-5)
    f, g = (od.function(x, "inverse_dynamics") for x in (r, snapped))
    assert g.n_instructions() < f.n_instructions()
    x = random_ports(f, r)
    difference = relative(g(**x)["tau"], f(**x)["tau"])
    assert 1e-9 < difference < 1e-4
    exact = od.function(r, "inverse_dynamics", method="recursive_body")
    assert relative(f(**x)["tau"], exact(**x)["tau"]) < 1e-12
    assert "snap_angles=1e-5" in r.canonical_report()
    assert "j1" in r.canonical_report()
    assert "snap_angles=1e-5" not in snapped.canonical_report()


@pytest.mark.slow
def test_report_counts():
    text = od.robots.panda().canonical_report()
    assert "7 of 7 rotations are quarter turns" in text
    assert "70, 56 where only joint torques" in text
    assert "frames moved onto the joint axes (turned, shifted): none" in text
    assert "panda_link7: mass mz Ixx Iyy to panda_link6; keeps mx my Ixx Ixy Iyy Ixz Iyz Izz" in text
    assert "panda_link1: mass mz Ixx Iyy to the ground, where they vanish" in text


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(ROBOTS))
def test_report_says_what_was_done_and_what_it_saves(name):
    r = robot(name)
    lines = r.canonical_report().splitlines()
    for quantity in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
        counts = next(line.split()[1:] for line in lines if line.split()[0] == quantity)
        written, aligned, regrouped = map(int, counts)
        assert written >= aligned >= regrouped > 0
        best = od.function(r, quantity)
        assert od.registry.choose(quantity, r, 0).regroup
        assert best.n_instructions() == regrouped
    model = canonical(r)
    turned = {line.split(":")[0].strip() for line in section(lines, "frames moved")}
    identity = np.eye(3), np.zeros(3)
    moved = [not all(np.allclose(a, b) for a, b in zip(model.to_body[i], identity, strict=True))
             for i in model.number[1:]]  # fmt: skip
    assert turned == {b.name for b, x in zip(r.bodies, moved, strict=True) if x}
    # what a body does not keep is zero in the regrouped form
    rows = section(lines, "parameters that go")
    kept = {line.split(":")[0].strip(): line.split("keeps ")[1].split() for line in rows}
    regrouped = canonical(r, regroup=True)
    for i, b in zip(model.number[1:], r.bodies, strict=True):
        if b.name in kept:
            left = np.count_nonzero(regrouped.inertia[i].parameters)
            assert left == (0 if kept[b.name] == ["nothing"] else len(kept[b.name]))


def section(lines, title):
    start = next(k for k, line in enumerate(lines) if line.strip().startswith(title)) + 1
    rest = lines[start:]
    return rest[: next((k for k, line in enumerate(rest) if not line.startswith("    ")), len(rest))]


def test_report_of_rounded_rotations():
    """A quarter turn of 10 digits is made exact, and said to be."""
    b = od.RobotBuilder("ten digits")
    b.add_link("base")
    b.add_body("arm", "revolute", "base", joint="j", mass=1, rpy=(1.5707963267, 0, 0))
    lines = b.build().canonical_report().splitlines()
    (row,) = section(lines, "rotations made exact")
    assert row.strip().startswith("arm: 2, 9.5e-11")


def test_results_of_frames_as_written():
    """The form without any alignment gives the same torques: it is a fair one to count against."""
    from oc_dyn.model.canonical import as_written

    r = robot("mimic")
    f = od.function(r, "inverse_dynamics")
    x = random_ports(f, r)
    q, v, dv = (np.array(y).reshape(-1, 1) for y in x.values())
    method = od.registry.get_method("inverse_dynamics", "taylor").function
    tau = method(as_written(r), 0, ca.DM(q), [ca.DM(v), ca.DM(dv)])[0]
    assert relative(tau, f(**x)["tau"]) < 1e-12


def test_a_file_with_few_digits_is_snapped_only_when_asked():
    written = """<robot name="short"><link name="a"/><link name="b"><inertial><mass value="1"/>
      <inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial></link><joint name="turn" type="continuous">
      <parent link="a"/><child link="b"/><origin rpy="1.5708 0 0"/></joint></robot>"""
    as_written, snapped = od.load_urdf(written), od.load_urdf(written, snap_angles=1e-5)
    assert any("turn" in line and "snap_angles" in line for line in as_written.report)
    assert not any("snap_angles" in line for line in snapped.report)
    R = od.function(snapped, "frame_pose", frame="b")(q=0)["R"].full()
    assert np.array_equal(np.abs(R), [[1, 0, 0], [0, 0, 1], [0, 1, 0]])
    assert np.abs(od.function(as_written, "frame_pose", frame="b")(q=0)["R"].full()[1, 1]) > 1e-6


@pytest.mark.parametrize("kind", jt.KINDS)
def test_a_joint_that_is_held_is_where_it_moves_to(kind):
    """By the displacement of its kind, and by what the canonical form makes of it."""
    r = build([kind, "revolute"], seed=41)
    q, n = r.random_configuration(2), r.nq - 1
    held = r.locked({"joint1": q[:n]})
    moves, stays = (od.function(x, "frame_pose", frame="link2") for x in (r, held))
    assert np.allclose(moves(q=q)["C"], stays(q=q[n:])["C"], atol=1e-12)
