"""Torques and their time derivatives to order 5 in 50-digit arithmetic, by a formulation of its own.

Everything is a truncated Taylor series in time, in the root frame: poses from the joints' motion, momentum of each body
about the root's origin, force and moment as the rate of momentum; a joint carries what the bodies behind it need. Only
the robot's data (tree, placements, axes, inertias) come from the toolkit. A series is an array (..., N) of mpf.
"""

from math import factorial

import mpmath
import numpy as np
import pytest
from mpmath import mp, mpf

import oc_dyn as od

ORDER = 5
TIMES = (0.4, 2.3)
N = ORDER + 3  # coefficients of a pose: accelerations of order 5 are its derivative 7


@pytest.fixture(autouse=True)
def digits():
    with mpmath.workdps(50):
        yield


# -- series ---------------------------------------------------------------------------------------------------


def exact(x):
    """Array of mpf from an array of doubles."""
    return np.array([mpf(v) for v in np.ravel(x)], object).reshape(np.shape(x))


def constant(x, n=N):
    x = exact(x)
    return np.stack([x] + [0 * x] * (n - 1), axis=-1)


def product(a, b, times=np.multiply):
    n = min(a.shape[-1], b.shape[-1])
    return np.stack([sum(times(a[..., j], b[..., k - j]) for j in range(k + 1)) for k in range(n)], axis=-1)


def matmul(a, b):
    return product(a, b, lambda x, y: x @ y)


def cross(a, b):
    return product(a, b, np.cross)


def transposed(a):
    return np.swapaxes(a, 0, 1)


def rate(a):
    return np.stack([(k + 1) * a[..., k + 1] for k in range(a.shape[-1] - 1)], axis=-1)


def cos_sin(x):
    """Series of cos x and sin x: c' = -s x', s' = c x'."""
    c, s, dx = [mp.cos(x[0])], [mp.sin(x[0])], rate(x)
    for k in range(x.shape[-1] - 1):
        c.append(-sum(s[j] * dx[k - j] for j in range(k + 1)) / (k + 1))
        s.append(sum(c[j] * dx[k - j] for j in range(k + 1)) / (k + 1))
    return np.array(c, object), np.array(s, object)


def turn(axis, angle):
    """Series of the rotation by the angle (N,) about a constant axis (3,), after Rodrigues."""
    x, y, z = exact(np.asarray(axis, float))
    size = mp.sqrt(x * x + y * y + z * z)
    A = np.array([[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]], object) / size
    c, s = cos_sin(angle)
    c[0] -= 1  # R = 1 + s A + (1 - c) A A
    return constant(np.eye(3), len(s)) + np.multiply.outer(A, s) - np.multiply.outer(A @ A, c)


# -- dynamics -------------------------------------------------------------------------------------------------


def torques(robot, motion):
    """Series (nv, ORDER + 1) of the generalised forces; motion: by body number its joint's angle (N,), or its pose."""
    poses, needs, zero = {0: (constant(np.eye(3)), constant(np.zeros(3)))}, {}, constant(np.zeros(3), N - 2)
    gravity = exact(robot.gravity)
    for b in robot.bodies:
        above = poses[b.parent]
        at = above[0], matmul(above[0], constant(b.translation)) + above[1]
        if b.joint.kind == "free":
            poses[b.index] = motion[b.index]  # of the root frame: free joints of the robots here stand there
        else:
            poses[b.index] = matmul(matmul(at[0], constant(b.rotation)), turn(b.joint.axis, motion[b.index])), at[1]
        R, p = poses[b.index]
        m, tensor = mpf(b.inertia.mass), exact(b.inertia.tensor)
        h = exact(b.inertia.moment)
        about_com = tensor - (h @ h * exact(np.eye(3)) - np.outer(h, h)) / m
        c = matmul(R, constant(h / m)) + p
        momentum = m * rate(c)
        W = matmul(rate(R), transposed(R))  # skew matrix of the angular velocity
        spin = matmul(matmul(matmul(R, constant(about_com)), transposed(R)), np.stack([W[2, 1], W[0, 2], W[1, 0]]))
        weight = m * constant(gravity, N)
        force = rate(momentum) - weight[..., : N - 2]
        moment = rate(cross(c, momentum) + spin) - cross(c, weight)[..., : N - 2]
        needs[b.index] = [force, moment]
    tau = [None] * robot.nv
    for b in reversed(robot.bodies):
        force, moment = needs[b.index]
        above = needs.setdefault(b.parent, [zero, zero])
        needs[b.parent] = [above[0] + force, above[1] + moment]
        R, p = poses[b.index]
        own = matmul(transposed(R), moment - cross(p, force)), matmul(transposed(R), force)
        if b.joint.kind == "free":
            tau[b.joint.v_index : b.joint.v_index + 6] = [*own[0], *own[1]]
        else:
            axis = exact(b.joint.axis)
            tau[b.joint.v_index] = axis @ own[0] / mp.sqrt(axis @ axis)
    return np.array(tau, object)


# -- motions --------------------------------------------------------------------------------------------------


def wave(amplitude, frequency, phase, t):
    """Series at time t of amplitude sin(frequency t + phase)."""
    a, w, x = mpf(amplitude), mpf(frequency), mpf(frequency) * mpf(t) + mpf(phase)
    return np.array([a * w**k * mp.sin(x + k * mp.pi / 2) / factorial(k) for k in range(N)], object)


def joint_waves(robot, t, seed=0):
    rng = np.random.default_rng(seed)
    one_axis = [b for b in robot.bodies if b.joint.kind != "free"]
    return {b.index: wave(rng.uniform(0.3, 1), rng.uniform(1, 3), rng.uniform(0, 6), t) for b in one_axis}


def tumbling_base(t):
    """Pose of a base that turns about all axes, quaternion and twist [angular; linear] in its axes: series, q exact."""
    angles = [wave(0.7, 1.1, 0.3, t), wave(0.5, 1.7, 1.0, t), wave(0.9, 1.3, 2.0, t)]
    R = constant(np.eye(3))
    quaternion = exact([1.0, 0.0, 0.0, 0.0])
    for axis, angle in zip(np.eye(3)[::-1], angles, strict=True):  # about z, then y, then x
        R = matmul(R, turn(axis, angle))
        (w, *u), half = quaternion, angle[0] / 2
        a, b = mp.cos(half), mp.sin(half) * exact(axis)
        quaternion = np.array([w * a - u @ b, *(w * b + a * np.array(u) + np.cross(u, b))], object)
    p = np.stack([wave(0.8, 1.2, 0.0, t), wave(0.6, 1.9, 0.5, t), wave(0.4, 1.5, 1.5, t)])
    W = matmul(transposed(R)[..., :-1], rate(R))
    twist = np.stack([W[2, 1], W[0, 2], W[1, 0], *matmul(transposed(R), rate(p))])
    return (R, p), np.array([*quaternion, *p[:, 0]], object), twist


def case(name, t):
    """(robot, q, [v, dv, ...], [tau, dtau, ...]): doubles, but the torques mpf."""
    robot = od.robots.by_name(name)
    motion = joint_waves(robot, t)
    q, v = np.zeros(robot.nq, object), np.zeros((robot.nv, N - 1), object)
    for b in robot.bodies:
        j = b.joint
        if j.kind == "free":
            motion[b.index], q[j.q_index : j.q_index + 7], v[j.v_index : j.v_index + 6] = tumbling_base(t)
        else:
            q[j.q_index], v[j.v_index] = motion[b.index][0], rate(motion[b.index])
    tau = torques(robot, motion)
    V = [factorial(k) * v[:, k] for k in range(N - 1)]
    return robot, q.astype(float), [x.astype(float) for x in V], [factorial(k) * tau[:, k] for k in range(ORDER + 1)]


def relative(got, expected):
    """Largest difference over the largest component."""
    return float(max(abs(exact(got) - expected)) / max(abs(expected)))
