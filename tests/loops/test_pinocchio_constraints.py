"""Dynamics with explicit constraints, their derivatives and impacts equal Pinocchio's, on robots that both can say.

Off closed configurations the two extend constraints differently: here rows are time derivatives of what is open, seen
from frame a, there velocities of the two frames against each other. So partial derivatives are compared along motions
that keep loops closed, and Baumgarte's terms where frame a stands still; contacts agree in all directions.
"""

import functools
import warnings

import casadi as ca
import numpy as np
import pytest
from loops.linkages import all_of, largest, linkage, state

import oc_dyn as od
from oc_dyn.model.closure import residual
from oc_dyn.model.loop_joints import KINDS, Loop
from oc_dyn.model.loops import close_tree
from oc_dyn.model.robot import tangent_map

pin = pytest.importorskip("pinocchio")
if not hasattr(pin, "BaumgarteCorrectorParameters"):
    pytest.skip("this Pinocchio is older than release 4", allow_module_level=True)

from loops.pinocchio_models import constraints, model_of, rows  # noqa: E402
from model.test_sdf import cassie as cassie_file  # noqa: E402

TOLERANCE = 1e-9
CONTACTS = {
    "panda": {"panda_link8": "point"},
    "fr3": {"fr3_link8": "surface"},
    "quadruped": {"LF_foot": "point", "RH_foot": "point"},
    "humanoid": {"left_leg6": "surface", "right_leg6": "point"},
    "held_ladder": {"foot": "point"},
}
LOOPS = ("gough_stewart", "welded", "ball_rods", "held_ladder")
PLANAR = ("four_bar", "six_bar", "planar_3rrr", "knee_linkage_leg")  # a hinge holds what its plane holds anyway


def welded():
    """A seven-joint arm whose hand is fixed to the ground: one velocity is left."""
    tree = od.robots.panda()
    q = tree.neutral() + [0.1, -0.3, 0.2, -1.8, 0.1, 1.4, 0.3]
    pose = od.function(tree, "frame_pose", frame="panda_link8")(q=q)
    end, links = tree.frame("panda_link8"), ("panda_link0", "panda_link8")
    frames = np.array(pose["C"])[:3, :3], np.array(pose["p"]).ravel(), end.rotation, end.translation
    loop = Loop("weld", "weld", KINDS["weld"], links, (0, end.body), *frames)
    return close_tree(tree, [loop], start=q)


def ball_rods(floating_base=False):
    """A spatial four-bar: crank and rocker about different axes, a rod on a universal joint and a ball."""
    b = od.RobotBuilder("ball_rods")
    frame = {"mass": 2.0, "com": (0.3, 0, 0.1), "inertia": (0.1, 0.01, 0, 0.2, 0, 0.2)}
    if floating_base:
        b.add_link("frame", **frame)
    else:  # branches that leave the ground spoil the first column of their derivatives, against their own differences
        b.add_link("ground")
        b.add_body("frame", "prismatic", "ground", joint="lift", axis=(0, 0.6, 0.8), **frame)
    rod = {"mass": 0.5, "com": (0.2, 0.01, 0), "inertia": (1e-3, 0, 0, 0.02, 0, 0.02)}
    b.add_body("crank", "revolute", "frame", joint="a", axis=(0, 0.8, 0.6), **rod)
    b.add_body("yoke", "revolute", "crank", joint="b", xyz=(0.3, 0, 0), axis=(0, 0, 1))
    b.add_body("rod", "revolute", "yoke", joint="e", axis=(0, 1, 0), **rod)
    b.add_body("rocker", "revolute", "frame", joint="c", xyz=(0.7, 0.1, 0), axis=(0, 1, 0), **rod)
    b.add_frame("foot", "frame", xyz=(0.1, 0.2, -0.5))
    b.close_loop("d", "rod", "rocker", "position", xyz_a=(0.8, 0, 0), xyz_b=(0.6, 0, 0), independent=("a",))
    return b.build(floating_base=floating_base, start={"a": -1.0, "c": -1.2})


def held_ladder():
    """The same on a floating frame, which touches the ground."""
    return ball_rods(floating_base=True)


@functools.cache
def case(name):
    """(robot, contacts, q, v, tau) at a seeded closed state that keeps loops and contacts closed."""
    rng = np.random.default_rng(2)
    contacts = CONTACTS.get(name, {})
    robot = _robot(name)
    if name in CONTACTS and name != "held_ladder":
        q, v = robot.random_configuration(3), rng.normal(size=robot.nv)
    else:
        if name in ("cassie", "ball_rods", "held_ladder"):
            q = robot.integrate(robot.neutral(), 0.05 * rng.normal(size=robot.nv))
            V = [rng.normal(size=robot.nv)]
        else:
            q, V = state(robot, 0)
        q, (v, *_), _ = all_of(robot, q, V)
    tree = getattr(robot, "tree", robot)
    if contacts:
        v = np.array(od.function(robot, "impact", contacts=contacts)(q, v, 0)[0]).ravel()
    return robot, contacts, q, v, rng.normal(size=tree.nv)


def _robot(name):
    if name == "cassie":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return od.load_sdf(cassie_file("cassie_v2.sdf"), floating_base=True, snap_angles=1e-5)
    return globals()[name]() if name in globals() else linkage(name)


class Theirs:
    """Their accelerations and forces, and derivatives of them, in our coordinates and rows."""

    def __init__(self, robot, contacts, mu=0.0, gains=None):
        self.tree = getattr(robot, "tree", robot)
        self.model, number = model_of(self.tree)
        self.turn = rows(robot, contacts)
        self.constraints = constraints(robot, contacts, self.model, number)
        if gains is not None:
            for x in self.constraints:
                x.setBaumgarteCorrectorParameters(pin.BaumgarteCorrectorParameters(*gains))
        self.states = [x.createData() for x in self.constraints]
        self.data, self.map = self.model.createData(), od.interop.to_pinocchio(self.tree, self.model)
        self.settings = pin.ProximalSettings(1e-14, 1e-14, mu, 200 if mu else 1)
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.states)

    def dynamics(self, q, v, tau):
        """(dv, f)"""
        Q, V = self.map.q(q), self.map.v(v, q)
        given = Q, V, self.map.tau(tau, q), self.constraints, self.states, self.settings
        a = pin.constraintDynamics(self.model, self.data, *given)
        return self.map.from_dv(a, V, Q), self.turn @ self.data.lambda_c

    def derivatives(self, q):
        """{port: value} behind dynamics at the same q; of the free joint velocities differ by their order alone."""
        found = pin.computeConstraintDynamicsDerivatives(self.model, self.data, self.constraints, self.states)
        P, by = self.map.velocity_matrix(q), ("q", "v", "tau")
        out = {f"ddv_d{x}": P.T @ D @ P for x, D in zip(by, found[:3], strict=True)}
        return out | {f"df_d{x}": self.turn @ D @ P for x, D in zip(by, found[3:], strict=True)}

    def impact(self, q, v, restitution):
        """(v_after, impulse), by their Jacobian: from constraints it leaves loops of two moving links open."""
        Q, V = self.map.q(q), self.map.v(v, q)
        pin.computeJointJacobians(self.model, self.data, Q)
        for constraint, found in zip(self.constraints, self.states, strict=True):
            constraint.calc(self.model, self.data, found)
        J = pin.getConstraintsJacobian(self.model, self.data, self.constraints, self.states)
        after = pin.impulseDynamics(self.model, self.data, Q, V, J, restitution)
        return self.map.from_v(after, Q), self.turn @ self.data.impulse_c


def kept_closed(robot, contacts, q, v):
    """(2 nv, count) basis of the steps of (q, v) on which loops stay closed and J v zero; all of contacts alone."""
    if not hasattr(robot, "tree"):
        return np.eye(2 * robot.nv)
    x, V = ca.SX.sym("q", robot.tree.nq), ca.SX.sym("v", robot.tree.nv)
    J = residual(robot)(x)[1]
    steps = ca.densify(tangent_map(robot.tree, x))
    at = ca.Function("at", [x, V], [J, ca.jtimes(J @ V, x, steps)])
    J, K = (np.array(y) for y in at(q, v))
    A = np.block([[J, np.zeros_like(J)], [K, J]])
    _, s, W = np.linalg.svd(A)
    return W[int((s > 1e-9 * s[0]).sum()) :].T


@pytest.mark.few(4)
@pytest.mark.sample("panda")
@pytest.mark.parametrize("name", [*dict.fromkeys([*CONTACTS, *LOOPS])])
def test_accelerations_forces_and_their_derivatives(name):
    robot, contacts, q, v, tau = case(name)
    theirs = Theirs(robot, contacts)
    found = [np.array(x).ravel() for x in od.function(robot, "constrained_dynamics", contacts=contacts)(q, v, tau)]
    for ours, there in zip(found, theirs.dynamics(q, v, tau), strict=True):
        assert largest(ours, there) < TOLERANCE
    f = od.function(robot, "constrained_dynamics_partials", contacts=contacts)
    ours = dict(zip(f.name_out(), map(np.array, f(q, v, tau)), strict=True))
    there = theirs.derivatives(q)
    N = kept_closed(robot, contacts, q, v)
    for of in ("dv", "f"):
        A, B = (np.hstack([x[f"d{of}_dq"], x[f"d{of}_dv"]]) @ N for x in (ours, there))
        assert largest(A, B) < TOLERANCE
        assert largest(ours[f"d{of}_dtau"], there[f"d{of}_dtau"]) < TOLERANCE


@pytest.mark.sample("four_bar")
@pytest.mark.parametrize("name", [*PLANAR, pytest.param("cassie", marks=pytest.mark.slow)])
def test_accelerations_of_redundant_loops(name):
    robot, contacts, q, v, tau = case(name)
    dv = np.array(od.function(robot, "constrained_dynamics", contacts=contacts)(q, v, tau)[0]).ravel()
    there, _ = Theirs(robot, contacts, mu=1e-6).dynamics(q, v, tau)
    assert largest(dv, there) < TOLERANCE


@pytest.mark.sample("panda-0.4")
@pytest.mark.parametrize("restitution", [0.0, 0.4])
@pytest.mark.parametrize("name", [*dict.fromkeys([*CONTACTS, *LOOPS])])
def test_impacts(name, restitution):
    robot, contacts, q, _, _ = case(name)
    v = np.random.default_rng(5).normal(size=getattr(robot, "tree", robot).nv)
    found = [np.array(x).ravel() for x in od.function(robot, "impact", contacts=contacts)(q, v, restitution)]
    for ours, there in zip(found, Theirs(robot, contacts).impact(q, v, restitution), strict=True):
        assert largest(ours, there) < TOLERANCE


def test_open_loops_are_taken_back_alike():
    tree = od.robots.panda()
    end, links = tree.frame("panda_link8"), ("panda_link0", "panda_link8")
    q = tree.neutral() + [0.1, -0.3, 0.2, -1.8, 0.1, 1.4, 0.3]
    place = np.array(od.function(tree, "frame_pose", frame="panda_link8")(q=q)["p"]).ravel()
    frames = np.eye(3), place, end.rotation, end.translation
    robot = close_tree(tree, [Loop("pin", "position", KINDS["position"], links, (0, end.body), *frames)], start=q)
    v, tau = np.random.default_rng(3).normal(size=(2, tree.nv))
    q, gains = q + 0.05 * v, (80.0, 15.0)
    found = od.function(robot, "constrained_dynamics", baumgarte=True)(q, v, tau, gains)
    there = Theirs(robot, {}, gains=gains).dynamics(q, v, tau)
    for a, b in zip(found, there, strict=True):
        assert largest(np.array(a).ravel(), b) < TOLERANCE
