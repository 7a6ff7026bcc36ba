"""What one bad sample does, and a program whose Gauss-Newton Hessian is nearly singular."""

import warnings

import casadi as ca
import numpy as np

from ...control.mpc import mpc
from ...errors import ModelWarning
from ...function import function
from ...model.urdf import load_urdf
from ...optimal_control.problem import Problem
from ...planning.limits import Limits
from ..example_robots import example_file
from .stepper import Stepper
from .tracking import Setting, controller, panda, start, world

FAULTS = (4.0, 6.0, 8.0, 10.0, 15.0, np.nan, np.inf)  # velocities of a joint in one sample [rad/s]
BEFORE, AFTER, REPEATS = 20, 20, 3  # samples before the fault and after it; runs, of which the least time of a step
FIELDS = ("velocity [rad/s]", "torque, share of its limit", "statuses of the sample", "good samples until ok")
FIELDS += ("step of the sample, in medians", "longest step after it, in medians")
SINGULAR = ("solver", "iterations at most", "median on the way [ms]", "longest [ms]", "longest in medians on the way")
SINGULAR += ("median at rest [ms]", "torque, share of its limit", "distance from the goal at the end [m]")
SINGULAR += ("statuses 0 to 4",)
NEAR = 0.01  # of the goal, where the way ends [m]
FIRST, AWAY = np.array([0.0, -1.2, 1.4, -1.0, -1.5, 0.0]), [-0.25, 0.3, 0.15]  # [rad]; of the goal from the tool [m]
UR5 = "ur_description/urdf/ur5_robot.urdf"


def faults(folder, flags, quick=False, **options):
    """Rows of FIELDS: the worst over the joints one of whose velocities is measured wrong once."""
    setting = Setting(steps=BEFORE + AFTER)
    stepper = Stepper(controller(setting, **options), folder, flags).build()
    _, most = panda()
    rows = []
    for value in FAULTS[-3:] if quick else FAULTS:
        runs = [_with_fault(stepper, setting, joint, value, quick) for joint in ((1,) if quick else range(7))]
        share = max(np.abs(u / most).max() for u, _, _ in runs)
        kinds = sorted({int(status[BEFORE]) for _, status, _ in runs})
        back = max(_back(status[BEFORE + 1 :]) for _, status, _ in runs)
        median = np.median([seconds[5:BEFORE] for _, _, seconds in runs])
        here = max(seconds[BEFORE] for _, _, seconds in runs) / median
        later = max(seconds[BEFORE + 1 :].max() for _, _, seconds in runs) / median
        rows.append([f"{value:g}", share, " ".join(map(str, kinds)), back, here, later])
    return rows


def _back(status):
    """Good samples until a status is 0 and stays so."""
    wrong = np.flatnonzero(status)
    return int(wrong[-1]) + 2 if wrong.size else 1


def _with_fault(stepper, setting, joint, value, quick):
    """(torques, statuses, least seconds) of a loop in which a joint's velocity is measured as `value` once."""
    plant, measured = world(setting)
    times = []
    for _ in range(1 if quick else REPEATS):
        stepper.begin()
        x, u, status, seconds = start(), [], [], []
        for k in range(setting.steps):
            q, v, r = (np.array(y) for y in measured(x))
            if k == BEFORE:
                v[joint] = value
            found = stepper.step({"q_now": q.ravel(), "v_now": v.ravel(), "r": r.T})
            u.append(found.outputs)
            status.append(found.status)
            seconds.append(found.seconds)
            x = plant(x, found.outputs).full().ravel()
        times.append(seconds)
    return np.array(u), np.array(status), np.min(times, axis=0)


def reach(qpsol, nodes=15, h=0.01, **options):
    """(PredictiveController of a UR5 whose tool goes to a place, its torques' limits, Function of the tool's place);
    None without the wheel that has the robot.

    Three squares for six joints; those of velocities and accelerations are so small that the Gauss-Newton Hessian is
    nearly singular.
    """
    file = example_file(UR5)
    if file is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = load_urdf(file)
    limits, ocp = Limits.of(robot), Problem(nodes, nodes * h)
    most, speed = np.minimum(limits.tau, 150.0), np.minimum(limits.v, 3.0)
    q, v, a = ocp.state("q", 6, guess=FIRST, scale=1), ocp.state("v", 6), ocp.control("a", 6)
    q_now, v_now, goal = ocp.parameter("q_now", 6), ocp.parameter("v_now", 6), ocp.parameter("goal", 3)
    tool = function(robot, "frame_pose", frame="tool0")
    place = tool(q=q)["p"]
    tau = function(robot, "inverse_dynamics", derivatives="analytic")(q, v, a)
    ocp.next(q, q + h * (v + h * a))
    ocp.next(v, v + h * a)
    ocp.limit(-1, tau / most, 1)
    ocp.limit(-1, (v + h * a) / speed, 1)
    ocp.start({q: q_now, v: v_now})
    ocp.minimize(squares=ca.vertcat(10 * (place - goal), 1e-3 * v, 1e-6 * a))
    ocp.minimize(terminal=1e-3 * ca.sumsqr(v))
    bounds = {"tau": (-most, most)}
    control = mpc(ocp, outputs={"tau": tau}, method="euler", qpsol=qpsol, output_bounds=bounds, name="ur5", **options)
    x = ca.SX.sym("x", 12)
    u = ca.SX.sym("u", 6)
    rate = ca.Function("rate", [x, u], [ca.vertcat(x[6:], function(robot, "forward_dynamics")(x[:6], x[6:], u))])
    plant = ca.Function("plant", [x, u], [ca.simpleRK(rate, 2)(x, u, h)])
    return control, most, plant, ca.Function("place", [q := ca.SX.sym("q", 6)], [tool(q=q)["p"]])


def singular(folder, flags, qpsol, quick=False, steps=150, **options):
    """A row of SINGULAR; None without the robot."""
    made = reach(qpsol, **options)
    if made is None:
        return None
    control, most, plant, place = made
    stepper = Stepper(control, folder, flags).build()
    goal = place(FIRST).full().ravel() + AWAY
    times = []
    for _ in range(1 if quick else REPEATS):
        stepper.begin()
        x, u, status, seconds, off = np.concatenate([FIRST, np.zeros(6)]), [], [], [], []
        for _ in range(steps):
            found = stepper.step({"q_now": x[:6], "v_now": x[6:], "goal": goal})
            u.append(found.outputs)
            status.append(found.status)
            seconds.append(found.seconds)
            off.append(float(np.linalg.norm(place(x[:6]).full().ravel() - goal)))
            x = plant(x, found.outputs).full().ravel()
        times.append(seconds)
    least, way = 1e3 * np.min(times, axis=0), np.array(off) > NEAR
    median, rest = np.median(least[way]), np.median(least[~way]) if not way.all() else np.nan
    share, kinds = np.abs(np.array(u) / most).max(), " ".join(map(str, np.bincount(status, minlength=5)))
    most_tried = options["iterations"]
    return [qpsol, most_tried, median, least.max(), least.max() / median, rest, share, off[-1], kinds]
