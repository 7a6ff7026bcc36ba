"""The canonical robot: what algorithms read. Same coordinates, same torques, better frames.

Every joint frame has its z axis on the joint's axis; rotation entries within robot.snap_angles (1e-9) of 0 or 1 are
made exact, and lengths [m] and components of axes below 1e-12 zero, unless snap_angles is 0; the two freedoms that
remain for a joint of one axis (turn about it, shift along it) are used to make placements sparse; and, where only
joint torques come out, inertial parameters that merely add up in the parent are moved there (base parameters, after
Gautier and Khalil 1990), so that many vanish. Results in the author's frames do not change: wrenches and poses are
converted at the border by `to_body`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import casadi as ca
import numpy as np

from ..errors import ModelError
from ..lie import se3
from ..lie.so3 import axis_frame
from ..lie.time_derivatives import time_derivatives
from . import joints as jt
from .cache import cached
from .inertia import Inertia, SymbolicInertia

CLEAN = 1e-9  # what is taken for a 0 or 1 of a rotation, unless the robot says otherwise
SHORT = 1e-12  # [m] or of an axis: zero, unless everything is kept
_ONE_AXIS = ("revolute", "continuous", "prismatic", "helical")
_ROTARY = ("revolute", "continuous")


@dataclass(frozen=True, eq=False)
class Canonical:
    """Tree for the algorithms: bodies 1..n, parents before children, 0 is the ground. Lists are indexed by body.

    parent, children: tree. kind, pitch, motion, S (6, nv): the joint; S is None for a transform joint, see
    subspaces(). R (3, 3), p (3,): resting placement of the joint frame in the parent's frame. inertia, M (6, 6): the
    body's inertia in its frame; of the ground, what regrouping moved there. armature [kg m^2 or kg]: one for all
    velocities of a joint, or one for each. A joint of several simple ones (joints.SPLIT) has bodies without mass
    between, so numbers are not the robot's: `number` maps the robot's to these.
    """

    robot: object
    parent: tuple
    children: tuple
    kind: tuple
    pitch: tuple
    motion: tuple
    S: tuple
    R: tuple
    p: tuple
    inertia: tuple
    M: tuple
    armature: tuple
    to_body: tuple  # pose of the canonical frame in the author's body frame; None for a body between
    coordinates: tuple  # (first coordinate, how many, first velocity, how many) of the joint in the robot's q and v
    rule: tuple  # (scale, offset): joint coordinate from the robot's coordinate
    number: tuple  # body number here of the robot's body 0, 1, 2, ...
    gravity: ca.DM
    rounded: tuple = ()  # (entries, largest change) of R that was made exact
    viscous: object = None  # (nv,) damping, where it is not the robot's own
    fluid: tuple = ()  # by body, of each link that a fluid acts on: (carry, M_A, D, d) of model/fluid.py; () if none

    @property
    def n(self):
        """Number of bodies."""
        return len(self.parent) - 1

    @property
    def bodies(self):
        """Body numbers, parents before children."""
        return range(1, self.n + 1)

    @property
    def reversed_bodies(self):
        """Body numbers, children before parents."""
        return range(self.n, 0, -1)

    def support(self, i):
        """Bodies on the path from the ground to body i, body i last."""
        path = []
        while i:
            path.append(i)
            i = self.parent[i]
        return path[::-1]

    def inertia_in_fluid(self, i):
        """(6, 6) inertia of body i with what a fluid adds; gravity does not act on that."""
        M = self.M[i]
        for carry, added, _, _ in self.fluid[i] if self.fluid else ():
            M = M + carry.T @ added @ carry
        return M

    def rotor(self, i):
        """(nv_i, nv_i) what the armature of joint i adds to its inertia."""
        own, size = self.armature[i], self.coordinates[i][3]
        return ca.diag(own) if isinstance(own, (ca.SX, ca.MX)) else own * ca.DM.eye(size)

    def joint_q(self, q):
        """{body: its joint's coordinates} from the robot's q (nq,)."""
        return self._split(q, "q")

    def joint_v(self, v):
        """{body: its joint's velocity or a derivative of it} from the robot's (nv,)."""
        return self._split(v, "v")

    def _split(self, x, which):
        out = {}
        for i in self.bodies:
            start, size = self.coordinates[i][:2] if which == "q" else self.coordinates[i][2:]
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
            _, _, first, size = self.coordinates[i]
            for k in range(size):
                part = self.rule[i][0] * force[i][k] if self.rule[i][0] != 1.0 else force[i][k]
                rows[first + k] = part if rows[first + k] is None else rows[first + k] + part
        return ca.vertcat(*rows) if rows else ca.DM.zeros(0, 1)

    def configuration_rate(self, q, v):
        """Time derivative of the robot's q (nq,) at velocity v (nv,)."""
        return self.robot.configuration_rate(q, v)

    def placement(self, i, qi):
        """Pose of body i in its parent at joint coordinates qi."""
        home = ca.DM(self.R[i]), ca.DM(self.p[i])
        return se3.compose(home, jt.displacement(self.kind[i], qi, self.pitch[i], self.motion[i]))

    def subspaces(self, q, V, order):
        """{body: [S, S', ..., S^(order)]} motion subspaces (6, nv) in the body's frame and their time derivatives
        along q (nq,), V = [v, dv, ...]; None where zero, as all derivatives are but those of transform joints."""
        out = {}
        q, v = self.joint_q(q), [self.joint_v(x) for x in V]
        for i in self.bodies:
            if self.kind[i] != "transform":
                out[i] = [self.S[i]] + [None] * order
                continue
            x = [ca.SX.sym("x", self.coordinates[i][1]) for _ in range(order + 1)]
            S = self.subspace_function(i)
            flow = list(pairwise(x))
            rates = [r.reshape((6, -1)) for r in time_derivatives(ca.vec(S(x[0])), order, flow, cse=True)]
            along = ca.Function("S", x, rates)
            found = along.call([q[i], *(v[k][i] for k in range(order))])
            out[i] = list(found)
        return out

    def subspace_function(self, i):
        """casadi.Function q_i -> S (6, nv) of a transform joint."""
        return jt.transform_subspace(self.motion[i], self.coordinates[i][1])

    def wrenches(self, w_ext):
        """{body: applied wrench (6,) in its canonical frame} from columns (6, bodies) in the author's body frames."""
        out = {i: ca.DM.zeros(6) for i in self.bodies}
        for column, i in enumerate(self.number[1:]):
            R, p = (ca.DM(x) for x in self.to_body[i])
            n, f = w_ext[:3, column], w_ext[3:, column]
            out[i] = ca.vertcat(R.T @ (n - ca.cross(p, f)), R.T @ f)
        return out


def canonical(robot, regroup=False):
    """Canonical form of a robot; `regroup` moves inertial parameters that only joint torques cannot tell apart."""
    if "loop" in robot.features:
        raise ModelError(robot.name, ["this is not there for robots with loops; robot.tree is the tree cut open"])
    # complete: the tree follows from the robot, its snap_angles included, and from this choice
    return cached(robot, ("canonical", regroup), lambda: _regrouped(canonical(robot)) if regroup else _build(robot))


def as_written(robot):
    """As the canonical form, but frames are not turned, shifted or made exact: z on the joint axis is all."""
    return cached(robot, ("as_written",), lambda: _build(robot, exact=False))


def with_parameters(model, params):
    """The canonical form, not regrouped, with casadi values for the robot's parameters (10 bodies,); the frames do not
    depend on them."""
    inertia = [SymbolicInertia.from_parameters(ca.DM(10, 1)) for _ in model.inertia]
    for k, i in enumerate(model.number[1:]):
        R, p = model.to_body[i]
        inertia[i] = SymbolicInertia.from_parameters(params[10 * k : 10 * k + 10]).expressed_in(R.T, -R.T @ p)
    M = tuple(ca.sparsify(x.matrix) for x in inertia)
    return replace(model, inertia=tuple(inertia), M=M)


@dataclass(frozen=True, eq=False)
class _Simple:
    """A body with a simple joint, in the author's frames: what a body of the robot is, or is split into."""

    joint: object
    parent: int
    rotation: np.ndarray
    translation: np.ndarray
    inertia: Inertia
    coordinates: tuple
    own_frame: np.ndarray | None  # turn of this frame in the author's body frame; None for a body between


def _simple_bodies(robot, short):
    """([None, _Simple, ...], number): joints of several simple ones split; numbers of the robot's bodies here."""
    out, number = [None], [0]
    for b in robot.bodies:
        j, parent = b.joint, number[b.parent]
        if j.kind not in jt.SPLIT:
            coordinates = (j.q_index, j.nq, j.v_index, j.nv)
            out.append(_Simple(j, parent, b.rotation, b.translation, b.inertia, coordinates, np.eye(3)))
        else:
            own, z = axis_frame(j.axis, short), np.array([0.0, 0.0, 1.0])
            placed = parent, b.rotation @ own, b.translation
            for kind, k, turn in jt.SPLIT[j.kind]:
                own, (above, rotation, translation) = own @ turn, placed
                one, where = replace(j, kind=kind, axis=z), (j.q_index + k, 1, j.v_index + k, 1)
                out.append(_Simple(one, above, rotation @ turn, translation, Inertia.zero(), where, None))
                placed = len(out) - 1, np.eye(3), np.zeros(3)
            body = b.inertia.expressed_in(own.T, np.zeros(3))
            out[-1] = replace(out[-1], inertia=body, own_frame=own)
        number.append(len(out) - 1)
    return out, tuple(number)


def _build(robot, exact=True):
    short = min(robot.snap_angles, SHORT)
    bodies, number = _simple_bodies(robot, short)
    bodies = _hung_on_turned_frames(bodies)
    n = len(bodies) - 1
    parent = (None, *(b.parent for b in bodies[1:]))
    below = [[] for _ in range(n + 1)]
    for i in range(1, n + 1):
        below[parent[i]].append(i)
    children = tuple(map(tuple, below))
    tolerance = robot.snap_angles if exact else 0.0
    K = [(np.eye(3), np.zeros(3))]  # canonical frame in the simple body's frame
    offset = [0.0] * (n + 1)
    home, inertia = [None], [Inertia.zero()]
    for i in range(1, n + 1):
        written = _axis_on_z(bodies[i].joint, short), np.zeros(3)
        K.append(_choose_frame(bodies, i, K, children[i], offset, tolerance, short) if exact else written)
        home.append(_home(K[parent[i]], bodies[i], K[i], offset[i], tolerance, short))
        R, p = K[i]
        inertia.append(bodies[i].inertia.expressed_in(R.T, -R.T @ p))
    joints = [None, *(b.joint for b in bodies[1:])]
    rule = [None]
    for j, extra in zip(joints[1:], offset[1:], strict=True):
        m = j.mimic
        rule.append((m.multiplier, m.offset + extra) if m else (1.0, extra))
    own = [
        None if b.own_frame is None else (b.own_frame @ R, b.own_frame @ p)
        for b, (R, p) in zip(bodies[1:], K[1:], strict=True)
    ]
    return Canonical(
        robot=robot,
        parent=parent,
        children=children,
        kind=(None, *(j.kind for j in joints[1:])),
        pitch=(None, *(j.pitch for j in joints[1:])),
        motion=(None, *(j.motion for j in joints[1:])),
        S=(None, *(_subspace(j) for j in joints[1:])),
        R=(None, *(h[0] for h in home[1:])),
        p=(None, *(h[1] for h in home[1:])),
        inertia=tuple(inertia),
        M=tuple(ca.sparsify(ca.DM(x.matrix)) for x in inertia),
        armature=(None, *(j.armature for j in joints[1:])),
        to_body=(K[0], *own),
        coordinates=(None, *(b.coordinates for b in bodies[1:])),
        rule=tuple(rule),
        number=number,
        gravity=ca.DM(robot.gravity),
        rounded=(None, *(h[2] for h in home[1:])),
        fluid=tuple(map(_pushed, inertia)) if any(x.fluid for x in inertia) else (),
    )


def _pushed(inertia):
    """What Canonical.fluid has of a body."""
    return tuple(
        (ca.sparsify(ca.DM(x.carry)), ca.sparsify(ca.DM(x.added)), ca.sparsify(ca.DM(x.drag)), ca.DM(x.quadratic))
        for x in inertia.fluid
    )


def _subspace(joint):
    return None if joint.kind == "transform" else ca.sparsify(ca.DM(jt.subspace(joint.kind, joint.pitch)))


def _hung_on_turned_frames(bodies):
    """Placements seen from the frame that the parent has after splitting."""
    out = [None]
    for b in bodies[1:]:
        if b.parent and bodies[b.parent].own_frame is not None:
            Q = bodies[b.parent].own_frame.T
            b = replace(b, rotation=Q @ b.rotation, translation=Q @ b.translation)
        out.append(b)
    return out


def clean_rotation(R, tolerance=CLEAN):
    """Rotation with entries within `tolerance` of 0, 1 or -1 made exact; of 1 only where the rest of the row and
    column is zero, so that it stays a rotation."""
    R = np.where(np.abs(R) < tolerance, 0.0, R)
    for i, j in np.argwhere(np.abs(np.abs(R) - 1.0) < tolerance):
        if np.count_nonzero(R[i]) == 1 and np.count_nonzero(R[:, j]) == 1:
            R[i, j] = np.sign(R[i, j])
    return R


def _home(K_parent, body, K, offset, tolerance, short):
    """Resting placement of the joint frame of a body in its parent's canonical frame, and what was rounded."""
    Rp, pp = K_parent
    back = _turn(-offset)  # the part of the frame's turn that the coordinate's offset makes
    given = Rp.T @ body.rotation @ K[0] @ back
    R = clean_rotation(given, tolerance)
    p = Rp.T @ (body.rotation @ K[1] + body.translation - pp)
    p[np.abs(p) < short] = 0.0
    return R, p, (int(np.sum(R != given)), float(np.abs(R - given).max()))


def _turn(angle):
    if angle == 0.0:
        return np.eye(3)
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def is_permutation(R, tolerance=CLEAN):
    """Whether the rotation, made exact, takes axes to axes."""
    return bool(np.all(np.isin(clean_rotation(R, tolerance), (0.0, 1.0, -1.0))))


def _axis_on_z(joint, short):
    return np.eye(3) if joint.kind in jt.WITHOUT_AXIS else axis_frame(joint.axis, short)


def _choose_frame(bodies, i, K, children, offset, tolerance, short):
    """Canonical frame of a body in the author's frame: z on the axis, turned and shifted to make placements sparse."""
    body = bodies[i]
    j = body.joint
    A = _axis_on_z(j, short)
    if j.kind not in _ONE_AXIS:
        return A, np.zeros(3)
    Rp, pp = K[body.parent]
    G = Rp.T @ body.rotation @ A
    if not is_permutation(G, tolerance):
        A = A @ _turn(-_last_angle(G))
    if j.kind in _ROTARY and len(children) == 1:
        # a turn about this axis in the placement of the only child joins this joint's coordinate
        child = bodies[children[0]]
        H = A.T @ child.rotation @ axis_frame(child.joint.axis, short)
        if child.joint.kind in _ONE_AXIS and not is_permutation(H, tolerance):
            angle = _first_angle(H)
            if abs(angle) > CLEAN:
                offset[i] = angle
                A = A @ _turn(angle)
    return A, _shift(bodies, body, A, pp, Rp, children) * A[:, 2]


def _first_angle(R):
    """Angle a of R = Rz(a) Rx(b) Rz(c)."""
    return 0.0 if np.hypot(R[0, 2], R[1, 2]) < CLEAN else np.arctan2(R[0, 2], -R[1, 2])


def _last_angle(R):
    """Angle c of R = Rz(a) Rx(b) Rz(c); where the axes are parallel all of the turn."""
    if np.hypot(R[2, 0], R[2, 1]) < CLEAN:
        return np.arctan2(R[1, 0], R[0, 0]) * np.sign(R[2, 2])
    return np.arctan2(R[2, 0], R[2, 1])


def _shift(bodies, body, A, pp, Rp, children):
    """Shift of the frame along its axis that leaves the fewest nonzero components in the placements around it."""
    axis = body.rotation @ A[:, 2]
    own = Rp.T @ (body.translation - pp)
    along = Rp.T @ axis
    below = [A.T @ bodies[c].translation for c in children]

    def nonzeros(d):
        # what stands on the ground costs nothing: the ground does not move and takes no wrench
        count = np.sum(np.abs(own + d * along) > 1e-12) if body.parent else 0
        return count + sum(np.sum(np.abs(x - [0, 0, d]) > 1e-12) for x in below)

    candidates = [0.0, -float(own @ along), *(float(x[2]) for x in below)]
    return min(candidates, key=lambda d: (nonzeros(d), d != 0.0))


def _regrouped(model):
    """The model with parameters moved to the parents wherever the joint cannot tell them apart."""
    inertia = moved_inertia(model)[0]
    M = tuple(ca.sparsify(ca.DM(x.matrix)) for x in inertia)
    return Canonical(**{**vars(model), "inertia": tuple(inertia), "M": M})


def moved_inertia(model):
    """(inertia, moved): lists by body of what it has after regrouping, and of what went to its parent."""
    inertia, moved = list(model.inertia), [None] * (model.n + 1)
    for i in model.reversed_bodies:
        moved[i] = part = _movable_part(model.kind[i], inertia[i])
        inertia[i] = inertia[i] - part
        inertia[model.parent[i]] = inertia[model.parent[i]] + part.expressed_in(model.R[i], model.p[i])
    return [_without_noise(new, old) for new, old in zip(inertia, model.inertia, strict=True)], moved


def _movable_part(kind, body):
    """The part of a body's inertia that moves with the parent alike, whatever the joint does."""
    T = body.tensor
    J = 0.5 * (T[0, 0] + T[1, 1] - T[2, 2])  # a slender rod on the axis has no spin
    rod = np.diag([J, J, 0.0])
    if kind in _ROTARY:
        return Inertia.computed(body.mass, np.array([0.0, 0.0, body.moment[2]]), rod)
    if kind == "prismatic":
        return Inertia.computed(0.0, np.zeros(3), T)
    if kind == "spherical":
        return Inertia.computed(body.mass, np.zeros(3), np.zeros((3, 3)))
    if kind in ("helical", "planar"):
        return Inertia.computed(0.0, np.zeros(3), rod)
    return Inertia.zero()


def _without_noise(new, old):
    """Parameters that are rounding errors of what was moved made exactly zero."""
    scale = 1e-14 * (np.abs(old.tensor).max() + np.abs(new.tensor).max())
    tensor = np.where(np.abs(new.tensor) < scale, 0.0, new.tensor)
    return Inertia.computed(new.mass, new.moment, tensor)


def almost_quarter_turns(robot, tolerance=1e-5):
    """Names of joints whose resting rotation has entries within `tolerance` of 0 or 1 that are not cleaned."""
    names = []
    for b in robot.bodies:
        R = clean_rotation(b.rotation, max(robot.snap_angles, CLEAN))
        if not np.array_equal(R, clean_rotation(b.rotation, tolerance)):
            names.append(b.joint.name)
    return tuple(names)
