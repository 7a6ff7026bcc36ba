"""The parts of the method composite as small Functions of packed numbers, the same for every robot but for `bodies`.

hop (12): rotation and position of a body's working axes in its parent's. Motion (12): w, u, wd, a. Integrals of a
subtree (31), screws of one coordinate (24), Effect (39): their fields one after the other, matrices by columns.
"""

from functools import cache

import casadi as ca

from ..working_axes.fields import BodyMotion, acceleration_matrix, carried, moved, plus, turned_by
from ..working_axes.frames import WorkingFrame, working_frames
from ..working_axes.rotations import PlaneRotation
from ..working_axes.screws import JointScrews, joint_screws
from ..working_axes.sums import Flow, constants
from .composite import Meeting
from .ground_motion import GroundIntegrals, body_integrals
from .joint_effects import Effect
from .joint_effects import effect as effect_of

_MOTION, _SCREW = (3, 3, 3, 3), (3,) * 8
_SUMS, _EFFECT = (1, 3, 9, 9, 3, 3, 3), (9, 3, 9, 3, 3, 3, 3, 3, 3)
_HOP, _BODY = (9, 3), (9, 3, 1, 3, 9, 3, 3, 3, 3, 3, 3)
_MEETING = (6, 6, 6, 6, 6, 3, 3, 3)
READ = (  # what joints i, j above it and k above both share: entries of the tensors
    *("i_qq", "j_qq", "k_qq", "i_qv", "j_qv", "k_qv", "i_vq", "j_vq", "k_vq"),
    *("i_vv", "j_vv", "k_vv", "k_vv_one", "i_vv_own", "ik_j", "jk_i"),
)


def bodies(model, W):
    """casadi.Function (q, v, dv[, W]) -> (43, bodies): hop, mass, first moment, second moments and applied wrench in
    working axes, the joint's velocity and the part of its rate that dv makes."""
    q, v, dv = (ca.SX.sym(x, n) for x, n in (("q", model.robot.nq), ("v", model.robot.nv), ("dv", model.robot.nv)))
    applied = [ca.SX.sym("W", *w.shape) for w in W or []]
    frames, joint = working_frames(model, model.joint_q(q)), [model.joint_v(x) for x in (v, dv)]
    wrenches = model.wrenches(applied[0]) if applied else {i: ca.DM.zeros(6) for i in model.bodies}
    columns = []
    for i in model.bodies:
        frame, turn = frames[i], frames[i].turn
        above = PlaneRotation() if frame.parallel or not model.parent[i] else frames[model.parent[i]].turn
        m, h, _, P = constants(model.inertia[i])
        wrench = (turn.outward(x) for x in ca.vertsplit(wrenches[i], 3))
        rates = (model.S[i] @ x[i] for x in joint)
        parts = above.outward(frame.R), above.outward(frame.p), m, turn.outward(h), turn.symmetric(P), *wrench, *rates
        columns.append(_packed(*parts))
    return ca.Function("bodies", [q, v, dv, *applied], [ca.horzcat(*columns)], {"cse": True})


@cache  # here and below: without arguments and of fixed sizes, so one Function serves all robots
def move():
    """(body (43), parent's motion) -> (what it carries to the body, its motion, GroundIntegrals of the body alone)."""
    body, above = ca.SX.sym("body", sum(_BODY)), ca.SX.sym("motion", 12)
    R, p, m, h, P, n, f, *joint = _unpacked(body, _BODY)
    before = carried(_frame(R, p), _motion(above))
    now = moved(before, joint)
    sums = body_integrals(m, h, P, now, (n, f))
    outputs = _packed(*before), _packed(now.w, now.u, now.wd, now.a), _packed_sums(sums)
    return _function("move", [body, above], outputs)


@cache
def screw():
    """(what the parent carries to the body, its motion, screw (6)) -> JointScrews."""
    before, now, s = ca.SX.sym("before", 12), ca.SX.sym("motion", 12), ca.SX.sym("s", 6)
    carried_on, s_ = _unpacked(before, _MOTION), ca.vertsplit(s, 3)
    U = acceleration_matrix(carried_on[0], carried_on[2])
    fields = joint_screws(carried_on, _motion(now), s_, [U @ x for x in s_], single=False)
    return _function("screw", [before, now, s], [_packed_screws(fields)])


@cache
def gather():
    """(hop, GroundIntegrals) -> the GroundIntegrals about the parent's origin."""
    hop, x = ca.SX.sym("hop", 12), ca.SX.sym("sums", sum(_SUMS))
    moved_on = GroundIntegrals(*_unpacked(x, _SUMS)).moved(_frame(*_unpacked(hop, _HOP)))
    return _function("gather", [hop, x], [_packed_sums(moved_on)])


@cache
def effect():
    """(GroundIntegrals, screws) -> Effect."""
    x, s = ca.SX.sym("sums", sum(_SUMS)), ca.SX.sym("screws", 24)
    return _function("effect", [x, s], [_packed_effect(effect_of(GroundIntegrals(*_unpacked(x, _SUMS)), _screws(s)))])


@cache
def join():
    """(GroundIntegrals, screws, screws of another coordinate of the joint) -> wrench u4 of the two."""
    x, s, t = ca.SX.sym("sums", sum(_SUMS)), ca.SX.sym("s", 24), ca.SX.sym("t", 24)
    sums, one, two = GroundIntegrals(*_unpacked(x, _SUMS)), _screws(s).s, _screws(t).s
    wrench = plus(turned_by(one, sums.inertia(two)), turned_by(two, sums.inertia(one)))
    return _function("join", [x, s, t], [_packed(*wrench)])


@cache
def inward():
    """(hop, screws) -> the screws in the axes that the hop belongs to."""
    hop, s = ca.SX.sym("hop", 12), ca.SX.sym("screws", 24)
    frame = _frame(*_unpacked(hop, _HOP))
    moved_on = _screws(s).each(lambda w, u: (frame.inward(w), frame.inward(u + ca.cross(w, frame.p))))
    return _function("inward", [hop, s], [_packed_screws(moved_on)])


@cache
def carry():
    """(hop, Effect) -> the Effect in the axes of the parent."""
    hop, x = ca.SX.sym("hop", 12), ca.SX.sym("effect", sum(_EFFECT))
    return _function("carry", [hop, x], [_packed_effect(_effect(x).moved(_frame(*_unpacked(hop, _HOP))))])


@cache
def meet():
    """(Effect, screws) -> wrenches u9, u3, u6, u7, u5 (6 each) and moments u11, u8, u1 (3 each), see Meeting."""
    x, s = ca.SX.sym("effect", sum(_EFFECT)), ca.SX.sym("screws", 24)
    u = Meeting(_effect(x), _screws(s))
    wrenches = [part for wrench in (u.u9, u.u3, u.u6, u.u7, u.u5) for part in wrench]
    return _function("meet", [x, s], [_packed(*wrenches, u.u11[0], u.u8[0], u.u1[0])])


@cache
def read():
    """(wrenches and moments of `meet`, screws of a joint above) -> the numbers READ, (16,)."""
    x, s = ca.SX.sym("wrenches", sum(_MEETING)), ca.SX.sym("screws", 24)
    u9, u3, u6, u7, u5, u11, u8, u1 = _unpacked(x, _MEETING)
    s, psi, psi2, rate = ca.vertsplit(s, 6)
    s9, s11, z9, y11 = u9.T @ s, u11.T @ s[:3], u9.T @ psi2, u11.T @ psi[:3]
    y9 = u9.T @ rate
    numbers = {
        "i_qq": u8.T @ psi[:3] + z9,
        "j_qq": u1.T @ psi[:3] + z9 + u11.T @ psi2[:3],
        "k_qq": u3.T @ s,
        "i_qv": u5.T @ s + y9,
        "j_qv": u1.T @ s[:3] + y9 + u11.T @ rate[:3],
        "k_qv": u6.T @ s,
        "i_vq": -y11,
        "j_vq": y11,
        "k_vq": u7.T @ s,
        "i_vv": -s11,
        "j_vv": s11,
        "k_vv": 2 * s9 + s11,
        "k_vv_one": 2 * s9,
        "i_vv_own": -s9 - s11,
        "ik_j": s9,
        "jk_i": s9 + s11,
    }
    return _function("read", [x, ca.vertcat(s, psi, psi2, rate)], [ca.vertcat(*(numbers[name] for name in READ))])


# -- packing ---------------------------------------------------------------------------------------------------


def _function(name, inputs, outputs):
    return ca.Function(name, inputs, outputs, {"cse": True})


def _packed(*parts):
    return ca.densify(ca.vertcat(*(ca.vec(ca.SX(part)) for part in parts)))


def _packed_sums(x):
    return _packed(x.m, x.h, x.P, x.K, x.l, x.n, x.f)


def _packed_screws(x):
    return _packed(*x.s, *x.psi, *x.psi2, *x.spin)


def _packed_effect(x):
    return _packed(x.s.K, x.s.l, x.change.K, x.change.l, *x.along_q, *x.along_v, x.G)


def _unpacked(x, sizes):
    ends = [sum(sizes[:k]) for k in range(len(sizes) + 1)]
    parts = zip(ca.vertsplit(x, ends), sizes, strict=True)
    return [ca.reshape(part, 3, 3) if size == 9 else part for part, size in parts]


def _effect(x):
    K, l, change_K, change_l, qn, qf, vn, vf, G = _unpacked(x, _EFFECT)
    return Effect(Flow(K, l), Flow(change_K, change_l), (qn, qf), (vn, vf), G)


def _screws(x):
    fields = _unpacked(x, _SCREW)
    return JointScrews(*zip(fields[::2], fields[1::2], strict=True))


def _motion(x):
    w, u, wd, a = _unpacked(x, _MOTION)
    return BodyMotion(w, u, wd, a, acceleration_matrix(w, wd))


def _frame(R, p):
    return WorkingFrame(R, p, PlaneRotation())
