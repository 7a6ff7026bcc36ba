"""Robots pushed at contacts, in a Problem and as motions; rollouts and what is said of a motion and its efforts."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od

FEET = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")


@pytest.fixture(scope="module")
def robot():
    return od.robots.quadruped()


@pytest.fixture(scope="module")
def crouch(robot):
    """(Problem, ContactBody, ContactMotion): the trunk goes down in 0.4 s, in two phases, feet where they are."""
    at = robot.neutral()
    at[7:] = np.ravel([(0, hip, -2 * hip) for hip in (0.75, 0.75, -0.75, -0.75)])
    ocp, weight = od.Problem(4, 0.2), 9.81 * robot.total_mass
    guess = [at, 0, 0, np.tile([0, 0, weight / 4], 4)]
    body = ocp.contact_body(robot, FEET, guess=guess, scale=(1, 5, 50, weight / 4))
    for phase in range(2):
        if phase:
            ocp.phase(4, 0.2)
        ocp.limit(0, body.tau[:6] / 10, 0)
        ocp.limit(0, body.pyramid(0.7) / weight, np.inf)
        ocp.limit(0, body.next()[3], 0)
        ocp.minimize(squares=ca.vertcat(body.tau[6:] / 150, 0.01 * body.dv))
    ocp.start({body.q: at, body.v: 0})
    ocp.goal({body.q[6]: at[6] - 0.05, body.q[4]: 0.02})
    return ocp, body, body.motion(ocp.solve(method="euler"))


@pytest.mark.slow
def test_a_body_on_contacts_obeys_mechanics_in_all_phases(robot, crouch):
    ocp, body, motion = crouch
    report = motion.report(0.7)
    assert report["residual of the dynamics at nodes [N, Nm]"] < 1e-6
    assert report["residual of the steps"] < 1e-8
    assert report["rate of momentum less the sum of wrenches, relative"] < 1e-8
    assert report["norm of the quaternions less 1"] < 1e-8
    assert report["force beyond the friction cone [N]"] < 1e-4
    assert report["pull of the ground [N]"] < 1e-4
    assert motion.q[-1, 6] == pytest.approx(motion.q[0, 6] - 0.05)
    assert motion.t[-1] == pytest.approx(0.4)


@pytest.mark.slow
def test_torques_are_those_of_jacobians(robot, crouch):
    motion = crouch[2]
    k = 5
    tau = np.array(od.function(robot, "inverse_dynamics")(motion.q[k], motion.v[k], motion.dv[k])).ravel()
    for name, force in zip(FEET, motion.f[k], strict=True):
        J = od.function(robot, "frame_jacobian", frame=name, representation="hybrid")(q=motion.q[k])["J"]
        tau -= np.array(J)[3:].T @ force
    assert motion.tau[k] == pytest.approx(tau, abs=1e-9)


@pytest.mark.slow
def test_between_nodes_are_the_steps(robot, crouch):
    motion = crouch[2]
    times, q, p = motion.between(4)
    assert times.shape == (8, 4)
    assert q.shape == (8, 4, robot.nq)
    assert p.shape == (8, 4, 4, 3)
    assert q[:, 0] == pytest.approx(motion.q[:-1], abs=1e-12)
    s = times[3, 2] - motion.t[3]
    assert q[3, 2] == pytest.approx(robot.integrate(motion.q[3], s * motion.v[3] + s**2 / 2 * motion.dv[3]))
    pose = od.function(robot, "frame_pose", frame=FEET[1])(q=q[3, 2])
    assert p[3, 2, 1] == pytest.approx(np.array(pose["p"]).ravel())


@pytest.mark.slow
def test_a_report_notices_what_is_wrong(robot, crouch):
    good = crouch[2]

    def changed(**new):
        parts = {k: np.array(getattr(good, k)) for k in ("t", "q", "v", "dv", "f")}
        return od.ContactMotion(robot, FEET, **{**parts, **{k: change(parts[k]) for k, change in new.items()}})

    pulled = changed(f=lambda f: f - [0, 0, 2 * f[..., 2].max()]).report(0.7)
    assert pulled["pull of the ground [N]"] > 10
    assert pulled["residual of the dynamics at nodes [N, Nm]"] > 10
    aside = changed(f=lambda f: f + [500, 0, 0]).report(0.7)
    assert aside["force beyond the friction cone [N]"] > 10
    assert aside["rate of momentum less the sum of wrenches, relative"] > 0.1
    assert changed(v=lambda v: 1.1 * v).report(0.7)["residual of the steps"] > 1e-4
    assert changed(q=lambda q: 1.01 * q).report(0.7)["norm of the quaternions less 1"] > 5e-3
    with pytest.raises(od.ShapeError, match=r"dv has shape \(7, 18\), expected \(8, 18\)"):
        changed(dv=lambda dv: dv[1:])


def test_a_pyramid_lies_within_the_cone(crouch):
    body = crouch[1]
    f = ca.Function("f", [body.f], [body.pyramid(0.5)])
    rng = np.random.default_rng(0)
    forces = rng.normal(size=(3, 4000)) + [[0], [0], [2]]
    rows = np.hstack([f(forces[:, k : k + 4]).full() for k in range(0, 4000, 4)])
    inside, (x, y, z) = (rows >= 0).all(axis=0), forces
    assert 100 < inside.sum() < 3900
    assert np.all(np.hypot(x, y)[inside] <= 0.5 * z[inside] + 1e-12)


@pytest.mark.slow
def test_a_body_without_contacts_falls():
    robot = od.robots.aerial_manipulator()
    ocp = od.Problem(10, 0.5)
    body = ocp.contact_body(robot)
    ocp.limit(0, body.tau, 0)
    ocp.start({body.q: robot.neutral(), body.v: 0})
    motion = body.motion(ocp.solve(method="euler"))
    assert motion.q[-1, 6] == pytest.approx(-9.81 * 0.5**2 / 2)
    assert motion.f.shape == (10, 0, 3)
    assert max(motion.report(0.7).values()) < 1e-6


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "wrong, error, words",
    [
        ({"frames": ("LF_fot",)}, od.UnknownName, "LF_foot"),
        ({"frames": "LF_foot"}, od.ShapeError, "expected a list"),
        ({"guess": [0, 0]}, od.ShapeError, "four guesses"),
        ({"scale": 3}, od.ShapeError, "four scales"),
    ],
)
def test_mistakes_are_named(robot, wrong, error, words):
    with pytest.raises(error, match=words):
        od.Problem(3, 1.0).contact_body(robot, **{"frames": FEET, **wrong})


# -- points ---------------------------------------------------------------------------------------------------


def test_points_and_their_velocities(robot):
    rng = np.random.default_rng(2)
    q, v, h = robot.random_configuration(1), rng.normal(size=robot.nv), 1e-6
    points = od.contact_points(robot, FEET)
    p, dp = (x.full() for x in points(q, v))
    ahead, behind = (points(robot.integrate(q, s * h * v), v)[0].full() for s in (1, -1))
    assert p.shape == (3, 4)
    assert dp == pytest.approx((ahead - behind) / (2 * h), abs=1e-7)
    with pytest.raises(od.UnknownName, match="LF_fot"):
        od.contact_points(robot, ["LF_fot"])


# -- rollouts and reports -------------------------------------------------------------------------------------


def test_a_rollout_has_order_four():
    x, w = ca.SX.sym("x"), ca.SX.sym("w")
    rate = ca.Function("rate", [x, w], [-x + w])  # with w = sin t from x = 0: (exp(-t) + sin t - cos t) / 2
    errors = []
    for K in (10, 20):
        t = np.linspace(0, 2, 2 * K + 1)
        found = od.rollout(rate, [0.0], np.sin(t)[:, None], 2 / K)
        assert found.shape == (K + 1, 1)
        errors.append(abs(found[-1, 0] - (np.exp(-2) + np.sin(2) - np.cos(2)) / 2))
    assert errors[0] < 1e-4
    assert 12 < errors[0] / errors[1] < 20
    for wrong in (np.zeros((4, 1)), np.zeros((5, 2)), np.zeros(5)):
        with pytest.raises(od.ShapeError, match="one every half step"):
            od.rollout(rate, [0.0], wrong, 0.1)
    with pytest.raises(od.ShapeError, match="x has 2 values, expected 1"):
        od.rollout(rate, [0.0, 0.0], np.zeros((5, 1)), 0.1)
    with pytest.raises(od.ShapeError, match="expected a casadi.Function"):
        od.rollout(lambda x, w: x, [0.0], np.zeros((5, 1)), 0.1)


@pytest.fixture(scope="module")
def swing():
    """(robot, t, q, v, tau) of an arm along a known motion, which takes those torques."""
    robot, t = od.robots.planar_2r(), np.linspace(0, 1, 1601)
    q, v, dv = (np.column_stack([a * np.sin(w * t + p) for a, w, p in rows]) for rows in _rows())
    return robot, t, q, v, od.function(robot, "inverse_dynamics")(q.T, v.T, dv.T).full().T


def _rows():
    for d in range(3):
        yield [(a * w**d, w, p + d * np.pi / 2) for a, w, p in ((0.8, 3.0, 0.1), (0.5, 5.0, 0.7))]


def test_a_motion_is_what_its_efforts_make_of_the_robot(swing):
    robot, t, q, v, tau = swing
    again = od.simulate(robot, q[0], v[0], tau, t[2])
    assert np.abs(again[0] - q[::2]).max() < 1e-8
    assert np.abs(again[1] - v[::2]).max() < 1e-7
    report = list(od.motion_report(robot, t, q, v, tau).values())
    assert report[0] < 1e-8
    assert report[1] < 1e-7
    assert report[2] < 1e-10
    assert report[3] < 1e-8


def test_efforts_that_are_not_those_are_noticed(swing):
    robot, t, q, v, tau = swing
    wrong = tau + 1e-3 * np.abs(tau).max() * np.cos(t)[:, None]
    report = list(od.motion_report(robot, t, q, v, wrong).values())
    assert min(report) > 1e-6
    bent = tau + 1e-3 * (np.abs(t - 0.5) < 0.001)[:, None]
    assert od.motion_report(robot, t, q, v, bent)["rate of the energy less the power, relative"] > 1e-7
    beside = od.motion_report(robot, t, q, v, bent, kinks=[0.5])
    assert beside["rate of the energy less the power, relative"] < 1e-10
    with pytest.raises(od.ShapeError, match="odd number of 11 or more"):
        od.motion_report(robot, t[:-1], q[:-1], v[:-1], tau[:-1])
    with pytest.raises(od.ShapeError, match=r"v has shape \(1601, 1\), expected \(1601, 2\)"):
        od.motion_report(robot, t, q, v[:, :1], tau)
    with pytest.raises(od.ShapeError, match="q and v have 1 and 2 values"):
        od.simulate(robot, [0.0], v[0], tau, t[2])
