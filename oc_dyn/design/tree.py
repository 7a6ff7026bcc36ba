"""The robot as a function of design parameters, in its author's frames, with the derivatives that Kim's tables want."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..lie import se3
from ..lie.so3 import axis_frame
from ..model import joints as jt
from ..model.fluid import refuse_fluid
from ..partials import scalar_changes as kim
from .parameters import from_parameters


class Displacement:
    """Pose exp(p_a x_a) exp(p_b x_b) ... of parameters p (m,); entries: (number of the parameter, twist (6,))."""

    def __init__(self, entries=()):
        self.entries = [(k, ca.DM(np.asarray(x, float))) for k, x in entries]

    def then(self, k, twist):
        """This one, followed by another twist."""
        return Displacement([*self.entries, (k, twist)])

    def before(self, pose, p):
        """The pose, displaced from the outside."""
        for k, x in reversed(self.entries):
            pose = se3.compose(_exp(p[k], x), pose)
        return pose

    def after(self, pose, p):
        """The pose, displaced from within."""
        for k, x in self.entries:
            pose = se3.compose(pose, _exp(p[k], x))
        return pose

    def rate(self, p, k):
        """dC/dp_k C^-1 (6,) of this pose C; None where it does not depend on p_k."""
        found, pose = None, _IDENTITY
        for j, x in self.entries:
            found = kim.total(found, se3.Ad(pose) @ x if j == k else None)
            pose = se3.compose(pose, _exp(p[j], x))
        return found

    def body_rate(self, p, k):
        """C^-1 dC/dp_k (6,); None where it is zero."""
        return kim.times(se3.Ad_inv(self.after(_IDENTITY, p)), self.rate(p, k))


_IDENTITY = ca.DM.eye(3), ca.DM.zeros(3)


def _exp(p, x):
    if not x[:3].nnz() or not np.any(np.array(x[:3])):
        return ca.DM.eye(3), p * x[3:]
    return se3.exp_se3(p * x)


@dataclass
class _Joint:
    """A joint: home is displaced by `left` from outside and by `right` from within; the axes are turned by `tilt`."""

    kind: str
    home: tuple
    axes: ca.DM
    motion: object
    coordinates: tuple
    rule: tuple
    pitch: object
    pitch_rates: list
    left: Displacement
    right: Displacement
    tilt: Displacement


@dataclass
class _Drives:
    """What a parameter changes of drives, by body: (body, power, gain), (body, rate), (body, reference, rate)."""

    armatures: list
    dampings: list
    springs: list

    @classmethod
    def of(cls, changes, bodies):
        """From Changes and {joint: body}."""
        return cls(
            [(bodies[name], power, float(x)) for (name, power), x in changes.armatures.items()],
            [(bodies[name], float(x)) for name, x in changes.dampings.items()],
            [(bodies[name], reference, float(x)) for (name, reference), x in changes.springs.items()],
        )


@dataclass
class _Part:
    """A link in its body: inertia with its gains {(parameter, power): (10,)}, pose, and how that is displaced."""

    inertia: object
    pose: tuple
    moved: Displacement
    gains: dict


class DesignTree:
    """A robot under the Changes of m parameters, p (m,) symbolic. What scalar_changes reads of a canonical robot has
    the same names here; `mechanism` and `change` are what it starts from."""

    def __init__(self, robot, changes, p):
        refuse_fluid("the design of links", robot)
        self.robot, self.p, n = robot, p, len(robot.bodies)
        self.bodies, self.reversed_bodies = range(1, n + 1), range(n, 0, -1)
        self.parent = (None, *(b.parent for b in robot.bodies))
        self.children = [[b.index for b in robot.bodies if b.parent == k] for k in range(n + 1)]
        named = {b.joint.name: b.index for b in robot.bodies}
        self._drives = [_Drives.of(c, named) for c in changes]
        own = {b.index: float(b.joint.armature) for b in robot.bodies}
        for k, drives in enumerate(self._drives):
            for i, power, gain in drives.armatures:
                own[i] = own[i] + gain * p[k] ** power
        self.armature = (None, *(own[i] for i in self.bodies))
        self.gravity = ca.DM(robot.gravity)
        carried = _carried(robot, changes)
        self.joints = {b.index: _joint(b, changes, carried.get(b.joint.parent, Displacement())) for b in robot.bodies}
        self.coordinates = (None, *(self.joints[i].coordinates for i in self.bodies))
        self.parts = {i: [] for i in range(n + 1)}
        for link, inertia in robot.description[0].items():
            frame = robot.frames[link]
            gains = {
                (k, power): x
                for k, c in enumerate(changes)
                for (where, power), x in c.inertias.items()
                if where == link
            }
            if inertia is not None or gains:
                pose = ca.DM(frame.rotation), ca.DM(frame.translation)
                self.parts[frame.body].append(_Part(inertia, pose, carried[link], gains))

    def joint_v(self, v):
        """{body: its joint's velocity} from the robot's (nv,)."""
        out = {}
        for i, j in self.joints.items():
            _, _, first, size = j.coordinates
            out[i] = v[first : first + size] if j.rule[0] == 1.0 else j.rule[0] * v[first : first + size]
        return out

    def stack(self, force):
        """(nv,) from {body: force of its joint, None for zero}; mimic joints add to their master."""
        rows = [ca.SX(0)] * self.robot.nv
        for i, j in self.joints.items():
            _, _, first, size = j.coordinates
            for k in range(size if force[i] is not None else 0):
                rows[first + k] = rows[first + k] + j.rule[0] * force[i][k]
        return ca.vertcat(ca.SX(0, 1), *rows)

    def mechanism(self, q, v, W=None):
        """The Mechanism at q (nq,), v (nv,), with applied wrenches W (6, bodies)."""
        v, Ad, S, rate = self.joint_v(v), {}, {}, {}
        for i, j in self.joints.items():
            qi = _joint_q(j, q)
            Ad[i] = se3.Ad_inv(self._placement(j, qi))
            S[i], rate[i] = self._screws(j, qi, v[i])
        I = {i: sum((self._part(part) for part in self.parts[i]), ca.DM.zeros(6, 6)) for i in self.bodies}
        applied = None if W is None else {i: W[:, i - 1] for i in self.bodies}
        return kim.Mechanism(self, Ad, S, rate, I, applied, v)

    def change(self, m, k, q, dq, dv, a, tau, W=None):
        """The Change of a Mechanism m by parameter k. The rest: q, and the derivatives by the parameter of q (on the
        tangent space), of velocities, accelerations, torques (nv,) and applied wrenches."""
        steps = self.joint_v(dq)
        out = kim.Change(v=self.joint_v(dv), a=self.joint_v(a), tau=self.joint_v(tau))
        for i, j in self.joints.items():
            qi, S = _joint_q(j, q), m.S[i]
            out.h[i] = kim.total(self._placement_change(j, qi, k), S @ steps[i])
            turned = _bracket(self._tilt_rate(j, k))
            out.S[i], out.rate[i] = kim.times(turned, S), kim.times(turned, m.rate[i])
            if j.pitch_rates[k]:
                out.S[i] = kim.total(out.S[i], ca.vertcat(0, 0, 0, self._axes(j)[:, 2] * j.pitch_rates[k]))
            if _curved(j):
                dS, d_rate = self._screw_steps(j)(qi, m.v[i], steps[i], out.v[i], self.p)
                out.S[i], out.rate[i] = kim.total(out.S[i], dS), kim.total(out.rate[i], d_rate)
            out.I[i] = kim.total(*(self._part_change(part, k) for part in self.parts[i]))
            if W is not None:
                out.applied[i] = W[:, i - 1]
        for i, power, gain in self._drives[k].armatures:
            out.J[i] = kim.total(out.J.get(i), power * gain * self.p[k] ** (power - 1))
        return out

    def damps(self):
        """Whether a parameter is a damping."""
        return any(x.dampings for x in self._drives)

    def effort(self, q, v):
        """(nv,) torques that drives need against damping and springs of the parameters."""
        speeds, force = self.joint_v(v), dict.fromkeys(self.bodies)
        for k, drives in enumerate(self._drives):
            for i, rate in drives.dampings:
                force[i] = kim.total(force[i], rate * self.p[k] * speeds[i])
            for i, reference, rate in drives.springs:
                force[i] = kim.total(force[i], rate * self.p[k] * (_joint_q(self.joints[i], q) - reference))
        return self.stack(force)

    def _axes(self, j):
        return j.tilt.before((j.axes, ca.DM.zeros(3)), self.p)[0] if j.tilt.entries else j.axes

    def _tilt_rate(self, j, k):
        return j.tilt.rate(self.p, k)

    def _pitch(self, j):
        return j.pitch + sum(x * self.p[k] for k, x in enumerate(j.pitch_rates) if x)

    def _motion(self, j, qi):
        """Displacement by the joint, in its frame at rest: A E A'."""
        A = self._axes(j)
        R, r = jt.displacement(j.kind, qi, self._pitch(j), j.motion)
        return A @ R @ A.T, A @ r

    def _placement(self, j, qi):
        home = j.right.after(j.left.before(j.home, self.p), self.p)
        return se3.compose(home, self._motion(j, qi))

    def _placement_change(self, j, qi, k):
        """T^-1 dT/dp_k at fixed q; None where it is zero."""
        home = j.right.after(j.home, self.p)
        outside = kim.times(se3.Ad_inv(home), j.left.body_rate(self.p, k))
        tilt = self._tilt_rate(j, k)
        before = kim.total(outside, j.right.body_rate(self.p, k), tilt)
        moved = kim.times(se3.Ad_inv(self._motion(j, qi)), before)
        pitched = ca.vertcat(0, 0, 0, self._axes(j)[:, 2] * (j.pitch_rates[k] * qi[0])) if j.pitch_rates[k] else None
        return kim.total(moved, kim.times(-1.0, tilt), pitched)

    def _screws(self, j, qi, vi):
        """(S, S') in the body's frame; S' is None where the screws do not move in it."""
        A = self._axes(j)
        to_body = ca.diagcat(A, A)
        if _curved(j):
            return tuple(to_body @ x for x in _curved_screws(j)(qi, vi))
        if j.kind == "cylindrical":
            return to_body @ ca.DM(np.eye(6)[:, [2, 5]]), None
        S = ca.DM(jt.subspace(j.kind))
        return to_body @ (S + ca.vertcat(0, 0, 0, 0, 0, self._pitch(j)) if j.kind == "helical" else S), None

    def _screw_steps(self, j):
        """Function (q, v, step of q, step of v, p) -> changes of S and S' by the steps."""
        n = j.coordinates[1]
        q, v, dq, dv = (ca.SX.sym(x, n) for x in ("q", "v", "dq", "dv"))
        found = self._screws(j, q, v)
        changes = [ca.jtimes(ca.vec(x), ca.vertcat(q, v), ca.vertcat(dq, dv)).reshape(x.shape) for x in found]
        return ca.Function("S", [q, v, dq, dv, self.p], changes)

    def _part(self, part):
        """Inertia (6, 6) of a link in its body's frame."""
        M = ca.DM.zeros(6, 6) if part.inertia is None else ca.DM(part.inertia.matrix)
        for (k, power), x in part.gains.items():
            M = M + self.p[k] ** power * _matrix(x)
        X = se3.Ad_inv(part.moved.before(part.pose, self.p))
        return X.T @ M @ X

    def _part_change(self, part, k):
        """d/dp_k of the same, by X' = -X ad(x) of X = Ad^-1 for a pose that moves with the twist x; None where zero."""
        X = se3.Ad_inv(part.moved.before(part.pose, self.p))
        found = None
        for (j, power), x in part.gains.items():
            if j == k:
                found = kim.total(found, power * self.p[k] ** (power - 1) * (X.T @ _matrix(x) @ X))
        turned = kim.times(self._part(part), _bracket(part.moved.rate(self.p, k)))
        return found if turned is None else kim.total(found, -(turned + turned.T))


def _joint(body, changes, left):
    j, name = body.joint, body.joint.name
    right, tilt = Displacement(), Displacement()
    for k, c in enumerate(changes):
        if name in c.moves:
            right = right.then(k, c.moves[name])
        if name in c.tilts:
            tilt = tilt.then(k, np.r_[c.tilts[name], 0.0, 0.0, 0.0])
    axes = np.eye(3) if j.kind in jt.WITHOUT_AXIS else axis_frame(j.axis)
    return _Joint(
        kind=j.kind,
        home=(ca.DM(body.rotation), ca.DM(body.translation)),
        axes=ca.DM(axes),
        motion=j.motion,
        coordinates=(j.q_index, j.nq, j.v_index, j.nv),
        rule=(j.mimic.multiplier, j.mimic.offset) if j.mimic else (1.0, 0.0),
        pitch=j.pitch,
        pitch_rates=[float(c.pitches.get(name, 0.0)) for c in changes],
        left=left,
        right=right,
        tilt=tilt,
    )


def _carried(robot, changes):
    """{link: Displacement in its body}: by the moves of fixed joints between it and the joint that moves the body."""
    moving = {b.joint.name for b in robot.bodies}
    beyond = {link: [] for link in robot.description[0]}
    for j in robot.description[1]:
        beyond[j.parent].append(j)
    carried = {robot.root: Displacement()}
    waiting = [robot.root]
    while waiting:
        link = waiting.pop()
        for j in beyond[link]:
            carried[j.child] = Displacement()
            if j.name not in moving:
                frame, out = robot.frames[j.child], carried[link]
                for k, c in enumerate(changes):
                    if j.name in c.moves:
                        pose = ca.DM(frame.rotation), ca.DM(frame.translation)
                        out = out.then(k, np.array(se3.Ad(pose) @ c.moves[j.name]).ravel())
                carried[j.child] = out
            waiting.append(j.child)
    return carried


def _joint_q(j, q):
    first, size, _, _ = j.coordinates
    part = q[first : first + size]
    return part if j.rule == (1.0, 0.0) else j.rule[0] * part + j.rule[1]


def _curved(j):
    """Whether the screws of a joint depend on its coordinates."""
    return j.kind not in (*jt.SUBSPACE, "cylindrical")


def _curved_screws(j):
    """Function (q, v) -> (S, S'), in the joint's frame."""
    n = j.coordinates[1]
    S = jt.transform_subspace(j.motion if j.kind == "transform" else lambda x: jt.displacement(j.kind, x), n)
    q, v = ca.SX.sym("q", n), ca.SX.sym("v", n)
    return ca.Function("S", [q, v], [S(q), ca.jtimes(ca.vec(S(q)), q, v).reshape((6, n))])


def _matrix(parameters):
    return ca.DM(from_parameters(parameters).matrix)


def _bracket(x):
    return None if x is None else se3.ad(x)
