"""The canonical robot: what algorithms read. Same coordinates, same torques, better frames.

Every joint frame has its z axis on the joint's axis; rotation entries within 1e-9 of 0 or 1 are made exact; the two
freedoms that remain for a joint of one axis (turn about it, shift along it) are used to make placements sparse; and,
where only joint torques come out, inertial parameters that merely add up in the parent are moved there (base
parameters, after Gautier and Khalil 1990), so that many vanish. Results in the author's frames do not change:
wrenches and poses are converted at the border by `to_body`.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..lie import se3
from . import joints as jt
from .inertia import Inertia
from .robot import axis_frame, cached

_CLEAN = 1e-9
_ONE_AXIS = ("revolute", "continuous", "prismatic", "helical")
_ROTARY = ("revolute", "continuous")


@dataclass(frozen=True, eq=False)
class Canonical:
    """Tree for the algorithms: bodies 1..n, parents before children, 0 is the ground. Lists are indexed by body.

    parent, children: tree. kind, pitch, S (6, nv): the joint. R (3, 3), p (3,): resting placement of the joint
    frame in the parent's frame. inertia, M (6, 6): the body's inertia in its frame. armature [kg m^2 or kg].
    """

    robot: object
    parent: tuple
    children: tuple
    kind: tuple
    pitch: tuple
    S: tuple
    R: tuple
    p: tuple
    inertia: tuple
    M: tuple
    armature: tuple
    to_body: tuple  # pose of the canonical frame in the author's body frame
    rule: tuple  # (scale, offset): joint coordinate from the robot's coordinate
    gravity: ca.DM

    @property
    def n(self):
        return len(self.parent) - 1

    @property
    def bodies(self):
        """Body numbers, parents before children."""
        return range(1, self.n + 1)

    @property
    def tips_first(self):
        """Body numbers, children before parents."""
        return range(self.n, 0, -1)

    def support(self, i):
        """Bodies on the path from the ground to body i, body i last."""
        path = []
        while i:
            path.append(i)
            i = self.parent[i]
        return path[::-1]

    def joint_q(self, q):
        """{body: its joint's coordinates} from the robot's q (nq,)."""
        return self._split(q, "q")

    def joint_v(self, v):
        """{body: its joint's velocity or a derivative of it} from the robot's (nv,)."""
        return self._split(v, "v")

    def _split(self, x, which):
        out = {}
        for i in self.bodies:
            j = self.robot.bodies[i - 1].joint
            start, size = (j.q_index, j.nq) if which == "q" else (j.v_index, j.nv)
            scale, offset = self.rule[i]
            part = x[start : start + size]
            if scale != 1.0:
                part = scale * part
            out[i] = part + offset if which == "q" and offset != 0.0 else part
        return out

    def stack(self, force):
        """Generalised force of the robot (nv,) from {body: its joint's force}; mimic joints add to their master."""
        rows = [None] * self.robot.nv
        for i in self.bodies:
            j = self.robot.bodies[i - 1].joint
            for k in range(j.nv):
                part = self.rule[i][0] * force[i][k] if self.rule[i][0] != 1.0 else force[i][k]
                rows[j.v_index + k] = part if rows[j.v_index + k] is None else rows[j.v_index + k] + part
        return ca.vertcat(*rows) if rows else ca.DM.zeros(0, 1)

    def configuration_rate(self, q, v):
        """Time derivative of the robot's q (nq,) at velocity v (nv,)."""
        return self.robot.configuration_rate(q, v)

    def placement(self, i, qi):
        """Pose of body i in its parent at joint coordinates qi."""
        return se3.compose((ca.DM(self.R[i]), ca.DM(self.p[i])), jt.displacement(self.kind[i], qi, self.pitch[i]))

    def wrenches(self, w_ext):
        """{body: applied wrench (6,) in its canonical frame} from columns (6, bodies) in the author's body frames."""
        out = {}
        for i in self.bodies:
            R, p = (ca.DM(x) for x in self.to_body[i])
            n, f = w_ext[:3, i - 1], w_ext[3:, i - 1]
            out[i] = ca.vertcat(R.T @ (n - ca.cross(p, f)), R.T @ f)
        return out


def canonical(robot, regroup=False):
    """Canonical form of a robot; `regroup` moves inertial parameters that only joint torques cannot tell apart."""
    return cached(robot, ("canonical", regroup), lambda: _regrouped(canonical(robot)) if regroup else _build(robot))


def _build(robot):
    n = len(robot.bodies)
    parent = (None, *(b.parent for b in robot.bodies))
    children = tuple(tuple(b.index for b in robot.bodies if b.parent == i) for i in range(n + 1))
    K = [(np.eye(3), np.zeros(3))]  # canonical frame in the author's body frame
    offset = [0.0] * (n + 1)
    home = [None]
    for b in robot.bodies:
        K.append(_choose_frame(robot, b, K, children[b.index], offset))
        home.append(_home(K[b.parent], b, K[b.index], offset[b.index], robot.snap_angles or _CLEAN))
    inertia = [Inertia.zero()]
    for b in robot.bodies:
        R, p = K[b.index]
        inertia.append(b.inertia.expressed_in(R.T, -R.T @ p))
    joints = [None, *(b.joint for b in robot.bodies)]
    S = [None, *(jt.subspace(j.kind, j.pitch) for j in joints[1:])]
    rule = [None]
    for i, j in enumerate(joints[1:], 1):
        m = j.mimic
        rule.append((m.multiplier, m.offset + offset[i]) if m else (1.0, offset[i]))
    return Canonical(
        robot=robot,
        parent=parent,
        children=children,
        kind=(None, *(j.kind for j in joints[1:])),
        pitch=(None, *(j.pitch for j in joints[1:])),
        S=tuple(None if s is None else ca.sparsify(ca.DM(s)) for s in S),
        R=(None, *(h[0] for h in home[1:])),
        p=(None, *(h[1] for h in home[1:])),
        inertia=tuple(inertia),
        M=tuple(ca.sparsify(ca.DM(x.matrix)) for x in inertia),
        armature=(None, *(j.armature for j in joints[1:])),
        to_body=tuple(K),
        rule=tuple(rule),
        gravity=ca.DM(robot.gravity),
    )


def clean_rotation(R, tolerance=_CLEAN):
    """Rotation with entries within `tolerance` of 0, 1 or -1 made exact."""
    R = np.array(R)
    for value in (0.0, 1.0, -1.0):
        R[np.abs(R - value) < tolerance] = value
    return R


def _home(K_parent, body, K, offset, tolerance):
    """Resting placement of the joint frame of a body in its parent's canonical frame."""
    Rp, pp = K_parent
    back = _turn(-offset)  # the part of the frame's turn that the coordinate's offset makes
    R = clean_rotation(Rp.T @ body.rotation @ K[0] @ back, tolerance)
    p = Rp.T @ (body.rotation @ K[1] + body.translation - pp)
    p[np.abs(p) < 1e-12] = 0.0
    return R, p


def _turn(angle):
    if angle == 0.0:
        return np.eye(3)
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _is_permutation(R, tolerance=_CLEAN):
    return bool(np.all(np.isin(clean_rotation(R, tolerance), (0.0, 1.0, -1.0))))


def _choose_frame(robot, body, K, children, offset):
    """Canonical frame of a body in the author's frame: z on the axis, turned and shifted to make placements sparse."""
    j = body.joint
    if j.kind in ("spherical", "free"):
        return np.eye(3), np.zeros(3)
    A = axis_frame(j.axis)
    if j.kind not in _ONE_AXIS:
        return A, np.zeros(3)
    tolerance = robot.snap_angles or _CLEAN
    Rp, pp = K[body.parent]
    G = Rp.T @ body.rotation @ A
    if not _is_permutation(G, tolerance):
        A = A @ _turn(-_last_angle(G))
    if j.kind in _ROTARY and len(children) == 1:
        # a turn about this axis in the placement of the only child joins this joint's coordinate
        child = robot.bodies[children[0] - 1]
        H = A.T @ child.rotation @ axis_frame(child.joint.axis)
        if child.joint.kind in _ONE_AXIS and not _is_permutation(H, tolerance):
            angle = _first_angle(H)
            if abs(angle) > _CLEAN:
                offset[body.index] = angle
                A = A @ _turn(angle)
    return A, _shift(robot, body, A, pp, Rp, children) * A[:, 2]


def _first_angle(R):
    """Angle a of R = Rz(a) Rx(b) Rz(c)."""
    return 0.0 if np.hypot(R[0, 2], R[1, 2]) < _CLEAN else np.arctan2(R[0, 2], -R[1, 2])


def _last_angle(R):
    """Angle c of R = Rz(a) Rx(b) Rz(c); where the axes are parallel all of the turn."""
    if np.hypot(R[2, 0], R[2, 1]) < _CLEAN:
        return np.arctan2(R[1, 0], R[0, 0]) * np.sign(R[2, 2])
    return np.arctan2(R[2, 0], R[2, 1])


def _shift(robot, body, A, pp, Rp, children):
    """Shift of the frame along its axis that leaves the fewest nonzero components in the placements around it."""
    axis = body.rotation @ A[:, 2]
    own = Rp.T @ (body.translation - pp)
    along = Rp.T @ axis
    below = [A.T @ robot.bodies[c - 1].translation for c in children]

    def nonzeros(d):
        # what stands on the ground costs nothing: the ground does not move and takes no wrench
        count = np.sum(np.abs(own + d * along) > 1e-12) if body.parent else 0
        return count + sum(np.sum(np.abs(x - [0, 0, d]) > 1e-12) for x in below)

    candidates = [0.0, -float(own @ along), *(float(x[2]) for x in below)]
    return min(candidates, key=lambda d: (nonzeros(d), d != 0.0))


def _regrouped(model):
    """The model with parameters moved to the parents wherever the joint cannot tell them apart."""
    inertia = list(model.inertia)
    for i in model.tips_first:
        part = _movable_part(model.kind[i], inertia[i])
        inertia[i] = inertia[i] - part
        if model.parent[i]:
            inertia[model.parent[i]] = inertia[model.parent[i]] + part.expressed_in(model.R[i], model.p[i])
    inertia = [_without_noise(new, old) for new, old in zip(inertia, model.inertia, strict=True)]
    M = tuple(ca.sparsify(ca.DM(x.matrix)) for x in inertia)
    return Canonical(**{**vars(model), "inertia": tuple(inertia), "M": M})


def _movable_part(kind, body):
    """The part of a body's inertia that moves with the parent alike, whatever the joint does."""
    T = body.tensor
    J = 0.5 * (T[0, 0] + T[1, 1] - T[2, 2])  # a slender rod on the axis has no spin
    rod = np.diag([J, J, 0.0])
    if kind in _ROTARY:
        return Inertia(body.mass, np.array([0.0, 0.0, body.moment[2]]), rod)
    if kind == "prismatic":
        return Inertia(0.0, np.zeros(3), T)
    if kind == "spherical":
        return Inertia(body.mass, np.zeros(3), np.zeros((3, 3)))
    if kind in ("helical", "planar"):
        return Inertia(0.0, np.zeros(3), rod)
    return Inertia.zero()


def _without_noise(new, old):
    """Parameters that are rounding errors of what was moved made exactly zero."""
    scale = 1e-14 * (np.abs(old.tensor).max() + np.abs(new.tensor).max())
    tensor = np.where(np.abs(new.tensor) < scale, 0.0, new.tensor)
    return Inertia(new.mass, new.moment, tensor)
