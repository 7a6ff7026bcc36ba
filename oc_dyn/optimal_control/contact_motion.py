"""A robot on joints of any kind that is pushed at points of contact: as part of a Problem, and its motion.

On intervals of length h accelerations v' and forces f are constant, and steps are on the manifold of configurations:

    q+ = q (+) (h v + h^2/2 v'),  v+ = v + h v',  tau = inverse dynamics (q, v, v') - sum J_i' f_i
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..derivatives import with_derivatives
from ..errors import ShapeError
from ..function import function
from ..kinematics.contact import contact_points, contact_wrenches
from ..model.cache import cached
from ..model.joints import GROUPS
from ..model.quaternions import check_quaternions, quaternions
from ..model.robot import Robot, check_robot
from ..numbers import as_floats
from ..subexpressions import merged
from ..types import Array
from .description import Body


@dataclass(frozen=True, eq=False)
class ContactBody(Body):
    """What Problem.contact_body made, symbols: q (nq,), v, dv, tau (nv,), f (3, k), and p, dp (3, k), where the points
    are and their velocities; forces, points and velocities in root axes."""

    problem: object

    p = property(lambda self: contact_points(self.robot, self.frames)(self.q, self.v)[0])
    dp = property(lambda self: contact_points(self.robot, self.frames)(self.q, self.v)[1])
    tau = property(lambda self: efforts(self.robot, self.frames, self.q, self.v, self.dv, self.f))

    def next(self):
        """(q, v, p, dp) at the next node, in the phase now described."""
        h = self.problem.step + self.problem.description.ahead
        q = self.robot.integrate_function()(self.q, h * self.v + h**2 / 2 * self.dv)
        v = self.v + h * self.dv
        return q, v, *contact_points(self.robot, self.frames)(q, v)

    def pyramid(self, friction):
        """(5, k) of at least 0 where forces push up and lie in the pyramid within the cone of friction about z [N]."""
        x, y, z = (self.f[i, :] for i in range(3))
        side = friction / np.sqrt(2) * z
        return ca.vertcat(z, side + x, side - x, side + y, side - y)

    def motion(self, found):
        """ContactMotion of a Solution."""
        k = len(self.frames)
        q, v, dv, f = (found[x] for x in (self.q, self.v, self.dv, self.f))
        return ContactMotion(self.robot, self.frames, found.t, q, v, dv, f.reshape(len(dv), k, 3))

    def __reduce__(self):
        """With its Problem, whose symbols are made anew in another process."""
        numbers = [k for k, body in enumerate(self.problem.description.bodies) if body.q is self.q]
        return of_problem, (self.problem, numbers[0])


def of_problem(problem, number):
    """ContactBody of a Problem by its number."""
    body = problem.description.bodies[number]
    return ContactBody(body.robot, body.frames, body.q, body.v, body.dv, body.f, problem)


@dataclass(frozen=True, eq=False)
class ContactMotion:
    """N steps of a robot that is pushed at the origins of k frames, wherever they come from.

    t (N + 1,) [s], q (N + 1, nq), v (N + 1, nv) at nodes; dv (N, nv), f (N, k, 3) [N, root axes] on intervals.
    """

    robot: Robot
    frames: tuple[str, ...]
    t: Array
    q: Array
    v: Array
    dv: Array
    f: Array

    def __post_init__(self):
        check_robot("contact motion", self.robot)
        N, robot = np.size(self.t) - 1, self.robot
        sizes = {"t": (N + 1,), "q": (N + 1, robot.nq), "v": (N + 1, robot.nv), "dv": (N, robot.nv)}
        for name, size in {**sizes, "f": (N, len(self.frames), 3)}.items():
            value = as_floats(f"contact motion: {name}", getattr(self, name))
            if value.shape != size:
                raise ShapeError(f"contact motion: {name} has shape {value.shape}, expected {size}")
            object.__setattr__(self, name, value)

    @property
    def tau(self) -> Array:
        """(N, nv) torques that it takes at the starts of intervals, zero at joints that need no motor."""
        forces = self.f.reshape(-1, 3).T
        return contact_efforts(self.robot, self.frames)(self.q[:-1].T, self.v[:-1].T, self.dv.T, forces).full().T

    def between(self, count: int) -> tuple[Array, Array, Array]:
        """(times (N, count), q (N, count, nq), p (N, count, k, 3)): configurations and points within the intervals,
        from their starts, on the steps."""
        s = np.diff(self.t)[:, None] * np.arange(count) / count
        q = np.stack([self._later(column) for column in s.T], axis=1)
        p = self._points(q.reshape(-1, self.robot.nq)).reshape(*s.shape, -1, 3)
        return self.t[:-1, None] + s, q, p

    def report(self, friction: float) -> dict[str, float]:
        """{what: number} of how far the motion is from the laws of mechanics, zero for not at all.

        The residual of the dynamics is that of joints of type free. Forces are constant on intervals: the cone, about
        z, holds everywhere if it does at nodes. Momentum is that about the root's origin; its rate is the moment and
        force of weight and contacts.
        """
        robot, N = self.robot, len(self.dv)
        h, q, v = np.diff(self.t), self.q[:-1], self.v[:-1]
        free = [i for j in robot.joints if j.kind == "free" for i in range(j.v_index, j.v_index + 6)]
        steps = np.hstack([self._later(h) - self.q[1:], v + h[:, None] * self.dv - self.v[1:]])
        quaternions = [j.q_index for j in robot.joints if j.nq > j.nv]
        norms = [np.linalg.norm(self.q[:, i : i + 4], axis=1) - 1 for i in quaternions]
        weight = robot.total_mass * np.array(robot.gravity)
        arms = np.concatenate([self._points(q), function(robot, "com", normalize=True)(q.T).full().T[:, None]], axis=1)
        forces = np.concatenate([self.f, np.broadcast_to(weight, (N, 1, 3))], axis=1)
        wrench = np.hstack([np.cross(arms, forces).sum(axis=1), forces.sum(axis=1)])
        rate = function(robot, "momentum", order=1, normalize=True)(q.T, v.T, self.dv.T)[1].full().T
        found = {
            "residual of the dynamics at nodes [N, Nm]": np.abs(self.tau[:, free]).max(initial=0),
            "residual of the steps": np.abs(steps).max(),
            "force beyond the friction cone [N]": (np.hypot(*self.f.T[:2]) - friction * self.f.T[2]).max(initial=0),
            "pull of the ground [N]": -self.f[..., 2].min(initial=0),
            "rate of momentum less the sum of wrenches, relative": np.abs(rate - wrench).max() / np.abs(wrench).max(),
            "norm of the quaternions less 1": np.abs(norms).max(initial=0),
        }
        return {what: float(x) for what, x in found.items()}

    def _later(self, s):
        step = s[:, None] * self.v[:-1] + s[:, None] ** 2 / 2 * self.dv
        later = self.robot.integrate_function().normalizing()  # report tells of the norms
        return later(self.q[:-1].T, step.T).full().T

    def _points(self, q):
        points = contact_points(self.robot, self.frames).normalizing()
        return points(q.T, 0)[0].full().T.reshape(len(q), -1, 3)


def check_guess(robot, q):
    """Refuse quaternions of a guess of q, (nq,) or (nodes, nq) numbers or one, that are zero: nothing can be evaluated
    there. Another length may be searched from."""
    if callable(q):
        return
    q = as_floats("contact_body: guess of q", q)
    if q.ndim == 0 or q.shape[-1] == robot.nq:
        at = np.full(robot.nq, q) if q.ndim == 0 else np.atleast_2d(q).T
        check_quaternions("contact_body: guess of q", quaternions(robot), at, normalize=True)


def efforts(robot, frames, q, v, dv, f):
    """tau (nv,) of contact_efforts, of MX; on a free base by Functions with registered derivatives.

    A turn of the base is seen in its own axes alone: weight and forces turn the other way. So with R the base's
    rotation and 0 for its neutral place, tau is inverse dynamics at (0, joints), v, dv + R_0' g - R' g, less the forces
    R_0 R' f at the frames, all of them on vector spaces.
    """
    if not _on_a_free_base(robot):
        return contact_efforts(robot, frames)(q, v, dv, f)
    # complete: as of contact_efforts
    base, dynamics, forces = cached(robot, ("efforts", tuple(frames)), lambda: _parts(robot, frames))
    turn, weight = base(q)
    joints = q[7:]
    pushed = forces(joints, ca.mtimes(turn, f))
    return dynamics(joints, v, dv + ca.vertcat(ca.MX(3, 1), weight, ca.MX(robot.nv - 6, 1))) - pushed


def _on_a_free_base(robot):
    """Whether its first joint is free and all others have one coordinate, the rate of which is the velocity."""
    first, *others = robot.joints
    return first.kind == "free" and first.q_index == 0 and bool(others) and all(j.kind not in GROUPS for j in others)


def _parts(robot, frames):
    """Functions q -> (R_0 R' (3, 3), R_0' g - R' g (3,)); (joints, v, dv) -> tau; (joints, f) -> sum J_i' f_i."""
    q, joints, f = ca.SX.sym("q", robot.nq), ca.SX.sym("joints", robot.nq - 7), ca.SX.sym("f", 3, len(frames))
    v, dv, n = ca.SX.sym("v", robot.nv), ca.SX.sym("dv", robot.nv), robot.nv - 6
    pose = function(robot, "frame_pose", frame=robot.bodies[0].name)
    neutral = ca.DM(robot.neutral())
    R, R_0 = pose(q=q)["R"], ca.sparsify(ca.DM(pose(q=neutral)["R"]))
    g = ca.DM(robot.gravity)
    base = ca.Function("base_turn", [q], [R_0 @ R.T, R_0.T @ g - R.T @ g], ["q"], ["turn", "weight"])
    at = ca.vertcat(ca.sparsify(neutral[:7]), joints)
    speeds = contact_points(robot, frames).normalizing()(at, v)[1]
    pushed = ca.densify(ca.gradient(ca.dot(f, speeds), v))
    forces = ca.Function("contact_torques", [joints, f], [merged(pushed)], ["joints", "f"], ["tau"])
    given = {"q": at, "v": v, "dv": dv}
    J, A, H = (function(robot, f"inverse_dynamics_{x}") for x in ("partials", "adjoint", "lagrangian_hessian"))
    tau, partials = function(robot, "inverse_dynamics")(**given)["tau"], J(**given)
    rows = {0: slice(6, 6 + n), 1: slice(6 + n, 12 + 2 * n), 2: slice(12 + 2 * n, 18 + 3 * n)}

    def adjoint(seeds):
        found = A(**given, lam=seeds[0])
        return [found["adj_q"][6:], found["adj_v"], found["adj_dv"]]

    def hessian(seeds):
        full = H(**given, lam=seeds[0])["H"]
        return {(i, j): full[a, b] for i, a in rows.items() for j, b in rows.items()}

    blocks = {(0, 0): partials["dtau_dq"][:, 6:], (0, 1): partials["dtau_dv"], (0, 2): partials["dtau_ddv"]}
    inputs, names = [joints, v, dv], ["joints", "v", "dv"]
    dynamics = with_derivatives("base_dynamics", inputs, [tau], blocks, adjoint, hessian, names, ["tau"])
    return base, dynamics, forces


def contact_efforts(robot, frames):
    """Function (q, v, dv, f (3, k)) -> tau (nv,): inverse dynamics less what the forces at the frames do."""
    # complete: names of frames of the robot, in their order
    return cached(robot, ("contact_efforts", tuple(frames)), lambda: _efforts(robot, frames))


def _efforts(robot, frames):
    q, v, dv = (ca.SX.sym(name, size) for name, size in (("q", robot.nq), ("v", robot.nv), ("dv", robot.nv)))
    f = ca.SX.sym("f", 3, len(frames))
    inverse = function(robot, "inverse_dynamics", external_wrenches=True)
    tau = inverse(q=q, v=v, dv=dv, w_ext=contact_wrenches(robot, frames)(q, f))["tau"]
    return ca.Function("contact_efforts", [q, v, dv, f], [tau], ["q", "v", "dv", "f"], ["tau"])
