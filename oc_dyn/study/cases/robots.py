"""Robots, ends and limits that the cases share."""

import importlib.metadata
from dataclasses import replace

import numpy as np

import oc_dyn as od

READY = (0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4)  # a Panda, as in `oc-dyn demo`
ENDS = {
    "ready": (READY, (1.5, 0.6, -0.8, -1.2, 0.9, 2.4, -0.6)),
    # drawn at random within the limits: the search takes many iterations
    "across": (
        (0.5985, 1.2048, -0.2764, -0.4791, -0.0005, 1.642, 0.5573),
        (2.2951, 1.2662, -0.1852, -0.9518, -0.0119, 1.9559, 1.3248),
    ),
}
UR5 = ((0.0, -1.2, 1.0, -0.8, 0.5, 0.0), (1.2, -0.6, 0.4, -1.4, 1.1, 0.8))
GRIPPERS = ("gripper_left_joint", "gripper_right_joint")
FILES = {
    "ur5": ("ur_description/urdf/ur5_robot.urdf", {}),
    "talos": ("talos_data/robots/talos_reduced.urdf", {}),
    "talos30": ("talos_data/robots/talos_reduced.urdf", {"lock": dict.fromkeys(GRIPPERS, 0.0)}),
}


def file(path):
    """A file of the wheel example-robot-data; FileNotFoundError without it."""
    try:
        files = importlib.metadata.files("example-robot-data") or ()
    except importlib.metadata.PackageNotFoundError:
        raise FileNotFoundError("the wheel example-robot-data is not installed") from None
    return next(str(f.locate()) for f in files if str(f).endswith(f"/robots/{path}"))


def robot(name, floating_base=False):
    """A new robot: "ur5", "talos", "talos30" (30 joints, its grippers held), "two_pandas" (14), or one without file."""
    if name == "two_pandas":
        return two_pandas()
    if name in FILES:
        path, options = FILES[name]
        return od.load_urdf(file(path), floating_base=floating_base, **options)
    return od.robots.by_name(name)


def two_pandas():
    """Two Pandas side by side on a base, 0.8 m apart: joints left_1 .. 7 and right_1 .. 7."""
    one = od.robots.panda()
    b = od.RobotBuilder("two_pandas")
    b.add_link("base")
    for side, y in (("left", 0.4), ("right", -0.4)):
        for k, body in enumerate(one.bodies):
            own = {"xyz": np.ravel(body.translation) + (np.array([0.0, y, 0.0]) if k == 0 else 0.0)}
            own |= {"rotation": body.rotation, "axis": body.joint.axis, "mass": body.inertia.mass}
            own |= {"com": body.inertia.com, "inertia": body.inertia.tensor_com}
            limits = {name: getattr(body.joint, name) for name in LIMITED}
            parent = f"{side}_link{k}" if k else "base"
            b.add_body(f"{side}_link{k + 1}", "revolute", parent, joint=f"{side}_{k + 1}", **own, **limits)
    return b.build()


LIMITED = ("lower", "upper", "velocity", "effort", "acceleration", "jerk", "effort_rate")


def limits(r):
    """Limits of a robot; where its file gives none of accelerations and above, those of a Panda's kind: five times the
    velocity a second, a hundred of these, and torques that change from none to their limit in 20 ms."""
    own = od.Limits.of(r)
    more = {"dv": 5 * own.v, "d2v": 500 * own.v, "dtau": 50 * own.tau}
    return replace(own, **{k: np.where(np.isfinite(getattr(own, k)), getattr(own, k), x) for k, x in more.items()})


def ends(r, seed, share=0.6):
    """Two configurations in the middle share of the limits of position, at random, that 0.8 of the torques can hold."""
    lower, upper = (np.clip(x, -np.pi, np.pi) for x in od.Limits.of(r).q)
    most, rng = 0.8 * od.Limits.of(r).tau, np.random.default_rng(seed)
    held, found = od.function(r, "inverse_dynamics"), []
    while len(found) < 2:
        shares = (1 - share) / 2 + share * rng.random((1000, len(lower)))
        for q in lower + (upper - lower) * shares:
            if np.all(np.abs(np.array(held(q, 0, 0))).ravel() <= most):
                found.append(q)
            if len(found) == 2:
                break
    return np.array(found)
