"""Plans with damped springs: deflections by the dampers' equation, against integration, Gramians and the undamped."""

import numpy as np
import pytest
import scipy.linalg
from elastic_arms import S3, cubic, exponential, planar_arm

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.elastic.damped_along import DampedDeflections
from oc_dyn.elastic.damped_flat import damped_flat_map, damped_gaps, wanted_continuity
from oc_dyn.elastic.plan_outputs import outputs_along

START, GOAL = [-0.6, 0.3], [0.7, -0.9]
MOTORS = {"motor_torque": [60, 30], "motor_speed": 4.0, "nodes": 20}


def arm(damping, spring=(500, 300), **more):
    return el.elastic_robot(planar_arm(2), list(spring), damping=damping, motor_inertia=[0.3, 0.2], **more)


def slide(stiffness=100.0, damping=0.0, inertia=0.2):
    """A mass of 1 kg on a rail, driven through a spring."""
    b = od.RobotBuilder("slide")
    b.add_link("base")
    body = {"mass": 1.0, "com": (0, 0, 0), "inertia": 1e-3 * np.eye(3)}
    b.add_body("mass", "prismatic", "base", joint="rail", axis=(1, 0, 0), **body)
    return el.elastic_robot(b.build(), stiffness, damping=damping, motor_inertia=inertia)


def motion_of(robot, duration=0.6, continuity=4):
    m = el.rest_to_rest(START, GOAL, duration, continuity=continuity)
    return od.Trajectory(m.t, m.pieces, joints=robot.links.coordinate_names, units=("rad",) * 2, robot=robot.links)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "robot",
    [
        lambda: arm(2.0),
        lambda: arm([5.0, 0.0]),
        lambda: el.elastic_robot(planar_arm(2), el.NonlinearSpring(cubic, damping=1.0), motor_inertia=0.3),
    ],
)
def test_deflections_are_those_of_an_integrator(robot):
    """damped_motion integrates the same equation by an explicit method, from the robot's own damped map."""
    robot = robot()
    motion = motion_of(robot)
    t = np.linspace(0, motion.duration, 31)
    known = el.damped_motion(robot, el.reference(robot, motion), 0.02, rtol=1e-12)
    found = outputs_along(robot, motion, t)
    for name in ("theta", "dtheta", "d2theta", "tau_m"):
        size = np.abs(getattr(known, name)).max()
        assert np.abs(found[name] - getattr(known, name)).max() < 2e-7 * size, name


def test_equations_of_the_deflections_hold_along_it_and_each_is_the_next_rate():
    robot = arm(2.0)
    motion, t = motion_of(robot), np.linspace(0.05, 0.55, 11)
    along = DampedDeflections(robot, motion)
    z, step = along.at(t), 1e-4
    for k in range(3):
        rate = (along.at(t + step)[k] - along.at(t - step)[k]) / (2 * step)
        assert np.abs(rate - z[k + 1]).max() < 1e-4 * np.abs(z[k + 1]).max()
    x = motion.sample(t).derivatives[:5]
    gaps = damped_gaps(robot).call([*(y.T for y in x), *(y.T for y in z[:3]), *(y.T for y in z[1:])])
    for k, gap in enumerate(gaps):
        assert np.abs(np.array(gap)).max() < 1e-4 * 50 * 20**k


@pytest.mark.sample(1)
@pytest.mark.parametrize("damping, bound", [(1e-2, 1e-4), (1e-4, 1e-6), (1e-9, 1e-10)])
def test_little_damping_is_none(damping, bound):
    """Without a stiff integrator's small steps; what remains falls with the damping."""
    robot = arm(damping)
    motion, t = motion_of(robot), np.linspace(0, 0.6, 41)
    found, known = outputs_along(robot, motion, t), outputs_along(robot.undamped(), motion, t)
    assert np.abs(found["tau_m"] - known["tau_m"]).max() < bound * np.abs(known["tau_m"]).max()


def test_motor_torques_need_one_derivative_less_where_all_springs_are_damped():
    assert wanted_continuity(arm(1.0)) == 3
    assert wanted_continuity(arm(1.0), "torque_rate") == 4
    assert wanted_continuity(arm([1.0, 0.0])) == 4
    f = damped_flat_map(arm(1.0))
    tau = f.name_out().index("tau_m")
    assert f.sparsity_jac(f.name_in().index("d3v"), tau).nnz() == 0
    with pytest.raises(od.OrderError, match="continuity=3"):
        el.plan_elastic(arm(1.0), START, GOAL, continuity=2, **MOTORS)
    with pytest.raises(od.OrderError, match="continuity=4"):
        el.plan_elastic(arm([1.0, 0.0]), START, GOAL, continuity=3, **MOTORS)


@pytest.mark.slow
def test_a_mass_on_a_rail_moves_as_planned():
    how = {"objective": "energy", "duration": 0.7, "nodes": 8}
    plan = el.plan_elastic(slide(damping=2.0), [0.0], [0.5], check="raise", **how)
    assert max(row.share for row in plan.check().defects) < 1e-6
    z, dz = plan.deflections.at(plan.motion.t[-1:])[:2]
    assert abs(z.item()) < 1e-3 * np.abs(plan.sample()["deflection"]).max()
    assert abs(dz.item()) < 1e-2


@pytest.mark.slow
def test_the_robot_follows_its_plan_and_limits_hold():
    robot = arm(2.0)
    plan = el.plan_elastic(robot, START, GOAL, deflection=0.2, check="raise", **MOTORS)
    assert plan.motion.continuity == 3
    report = plan.check(1e-4)
    assert report.ok(1.1e-3)
    assert max(plan.shares().values()) > 0.99
    assert max(row.share for row in report.defects) < 1e-6
    assert not plan.check(robot=robot.undamped()).ok()
    run = el.simulate(robot, el.feedforward_pd(robot, 0.0, 0.0, integrate_damping=True),
                      el.reference(robot, plan.motion, needs="bounded torque"), dt=5e-3)  # fmt: skip
    assert run.largest_error < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("damping", [1e-3, 0.1])
def test_time_of_little_damping_is_that_of_none(damping):
    alone = el.plan_elastic(arm(0.0), START, GOAL, continuity=4, **MOTORS)
    plan = el.plan_elastic(arm(damping), START, GOAL, continuity=4, **MOTORS)
    assert plan.duration == pytest.approx(alone.duration, rel=5e-3)
    assert plan.check().ok()


def least_energy(stiffness, damping, inertia, T, far):
    """Least integral of the squared motor force from rest to rest over `far`, by the Gramian of the linear system."""
    K, D, B = stiffness, damping, inertia
    A = np.array([[0, 1, 0, 0], [-K, -D, K, D], [0, 0, 0, 1], [K / B, D / B, -K / B, -D / B]], float)
    points, weights = np.polynomial.legendre.leggauss(80)
    columns = [scipy.linalg.expm(A * T * (x + 1) / 2) @ [0, 0, 0, 1 / B] for x in points]
    W = sum(w * T / 2 * np.outer(c, c) for c, w in zip(columns, weights, strict=True))
    goal = np.array([far, 0, far, 0])
    return goal @ np.linalg.solve(W, goal)


@pytest.mark.slow
@pytest.mark.parametrize("damping", [0.0, 1.0, 20.0])
def test_least_loss_tends_to_that_of_the_gramian(damping):
    """The motor force of a plan begins and ends at rest; what that costs falls with the intervals."""
    least = least_energy(100.0, damping, 0.2, 0.7, 0.5)
    plans = [
        el.plan_elastic(slide(damping=damping), [0.0], [0.5], objective="energy", duration=0.7, nodes=n)
        for n in (12, 24, 48)
    ]
    a, b, c = (plan.objective / least - 1 for plan in plans)
    assert 0 < c < 0.6 * b < 0.4 * a
    assert abs(c - (c - b) ** 2 / (c - 2 * b + a)) < 0.03  # Aitken's limit of the three
    assert max(row.share for plan in plans for row in plan.check().defects) < 1e-6


@pytest.mark.slow
def test_flat_motion_has_the_deflections_as_unknowns():
    """The least loss as a problem in other words: a chain of states at nodes, ends said by hand."""
    robot = slide(damping=2.0)
    plan = el.plan_elastic(robot, [0.0], [0.5], objective="energy", duration=0.7, nodes=8)
    ocp = od.Problem(8, 0.7)
    flat = el.flat_motion(ocp, robot, guess=[lambda s: 0.5 * s, *[0.0] * 4], scale=[1.0, 4.0, 20.0, 200.0, 4e3])
    rest = {x: 0 for x in flat.q[1:4]}
    damped = next(x.symbol for x in ocp._states if x.name == "damped_deflection")
    ocp.start({flat.q[0]: 0.0, **rest, damped: [0.0, 0.0, 0.0]})
    ocp.goal({flat.q[0]: 0.5, **rest, damped[0]: 0.0})
    points = (np.polynomial.legendre.leggauss(4)[0] + 1) / 2
    weights = np.polynomial.legendre.leggauss(4)[1] / 2
    loss = sum(w * flat.between(float(c)).tau_m ** 2 for c, w in zip(points, weights, strict=True))
    ocp.minimize(integral=loss / 100)
    found = ocp.solve(method="euler", check="off")
    assert 100 * found.objective == pytest.approx(plan.objective, rel=1e-2)


@pytest.mark.slow
def test_rates_mixed_and_variable_springs_are_planned():
    mixed = el.elastic_robot(planar_arm(2), {"joint2": 300}, damping={"joint2": 1.0}, motor_inertia=[0.3, 0.2])
    varied = el.elastic_robot(planar_arm(2), el.VariableSpring(damping=1.0), motor_inertia=[0.3, 0.2])
    bounds = el.PlannedStiffness([200, 150], [600, 400], rate=4000)
    cases = [
        (arm(2.0), {"motor_torque_rate": 800.0}),
        (arm([2.0, 0.0]), {"objective": "energy", "duration": 0.7}),
        (mixed, {"objective": "work", "duration": 0.7}),
        (varied, {"sigma": bounds}),
    ]
    for robot, more in cases:
        assert el.plan_elastic(robot, START, GOAL, **MOTORS | {"nodes": 10} | more).check().ok(2e-3), more


@pytest.mark.slow
def test_obstacles_are_kept_off_with_dampers():
    from test_elastic_among_obstacles import CLEARANCE, GOAL, START
    from test_elastic_among_obstacles import arm as among

    robot, scene = among()
    damped = el.elastic_robot(robot.links, [500, 400], damping=2.0, motor_inertia=[0.5, 0.3])
    how = MOTORS | {"nodes": 12}
    plan = el.plan_elastic(damped, START, GOAL, scene=scene, clearance=CLEARANCE, check="off", **how)
    assert plan.info["clearance"]["certified"] >= CLEARANCE
    assert plan.check(scene=scene, clearance=CLEARANCE).ok(2e-2)


@pytest.mark.parametrize(
    "robot, words",
    [
        (lambda: arm(1.0, coupling=S3[:2, :2]), "the complete model"),
        (
            lambda: el.elastic_robot(
                planar_arm(2), el.AntagonisticSprings(exponential, damping=1.0), motor_inertia=[0.3] * 4
            ),
            "pairs of springs .joint1.",
        ),
        (
            lambda: el.elastic_robot(
                planar_arm(2), el.VariableSpring(damping=1.0), motor_inertia=0.3, stiffness_inertia=0.01
            ),
            "drives of the stiffness",
        ),
    ],
)
def test_what_no_motion_of_the_links_determines_is_refused(robot, words):
    robot = robot()
    sigma = [50.0, 50.0] if robot.sigma_names else None
    with pytest.raises(od.ModelError, match=words):
        el.plan_elastic(robot, START, GOAL, sigma=sigma, motor_torque=60.0)
