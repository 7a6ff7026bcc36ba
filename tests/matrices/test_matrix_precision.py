"""Time derivatives of M, C and g to order 4 against 50-digit arithmetic, together and each alone.

Together: M dv + C v and g by the torques of fifty_digits.py, on real robots. Each alone: on robots of revolute and
prismatic joints along polynomial motions, from axes and centres of mass in the root frame, as series in time. C is not
unique; there are the Christoffel symbols of M, from differences of M by q of 50 digits, and two sums over bodies.
"""

from functools import cache
from math import comb

import numpy as np
import pytest
import samples
from fifty_digits import (
    ORDER,
    TIMES,
    case,
    constant,
    cross,
    digits,
    exact,
    factorial,
    joint_waves,
    matmul,
    product,
    rate,
    relative,
    torques,
    transposed,
    tumbling_base,
    turn,
)
from mpmath import mp, mpf

import oc_dyn as od

TOP = 4
__all__ = ["digits"]  # the fixture that sets 50 digits


CASES = [("jacobian_sum", "panda"), ("closed_form", "panda"), ("jacobian_sum", "aerial_manipulator")]


@pytest.mark.slow
@pytest.mark.parametrize("method, name", CASES)
def test_matrices(method, name):
    """g alone is what gravity changes in the torques; M dv + C v, with all derivatives, what is left without it."""
    for t in TIMES[:1]:
        robot, q, V, tau = case(name, t)
        motion = joint_waves(robot, t) | {b.index: tumbling_base(t)[0] for b in robot.bodies if b.joint.kind == "free"}
        afloat = torques(robot.with_gravity((0, 0, 0)), motion)
        afloat = [factorial(k) * afloat[:, k] for k in range(ORDER + 1)]
        M, C, g = (
            [x.full() for x in f.call([q, *V[: f.n_in() - 1]])]
            for f in (
                od.function(robot, quantity, order=TOP, method=method)
                for quantity in ("mass_matrix", "coriolis_matrix", "gravity")
            )
        )
        for n in range(TOP + 1):
            moved = sum(comb(n, k) * (M[n - k] @ V[k + 1] + C[n - k] @ V[k]) for k in range(n + 1))
            assert relative(moved, afloat[n]) < 1e-10, n
            assert relative(g[n].ravel(), tau[n] - afloat[n]) < 1e-10, n


# -- each matrix alone ----------------------------------------------------------------------------------------

NAMES = ("serial", "branching", "prismatic")
TERMS = TOP + 2  # coefficients of q(t): C' to order 4 has its derivative 5
STEP = mpf(10) ** -18


def motion(nv):
    """Coefficients (nv, TERMS) of a polynomial motion; doubles, so that q and v are the same for both sides."""
    return np.random.default_rng(31).uniform(-0.7, 0.7, (nv, TERMS))


def still(x):
    """Series of a constant."""
    return np.stack([x] + [0 * x] * (TERMS - 1), axis=-1)


def rotation(R):
    """A rotation of doubles made one of 50 digits."""
    R = exact(R)
    for _ in range(2):
        R = R @ (3 * exact(np.eye(3)) - R.T @ R) / 2
    return R


def bodies(robot, q):
    """[(mass, R, tensor about the centre of mass c, c - p, angular and linear Jacobian columns of c)] as series."""
    poses, axes, out = {0: (constant(np.eye(3), TERMS), constant(np.zeros(3), TERMS))}, {}, []
    for b in robot.bodies:
        j, (R, p) = b.joint, poses[b.parent]
        p, R = matmul(R, constant(b.translation, TERMS)) + p, matmul(R, still(rotation(b.rotation)))
        z = exact(j.axis) / mp.sqrt(sum(x * x for x in exact(j.axis)))
        z = matmul(R, still(z))
        if j.kind == "prismatic":
            p = p + product(z, q[j.v_index])
        else:
            R = matmul(R, turn(j.axis, q[j.v_index]))
        poses[b.index] = R, p
        axes[b.index] = axes.get(b.parent, []) + [(j.v_index, j.kind, z, p)]
        m, h, T = mpf(b.inertia.mass), exact(b.inertia.moment), exact(b.inertia.tensor)
        arm = matmul(R, constant(h, TERMS) / m)
        T = (T + T.T) / 2  # doubles that were turned are symmetric to rounding only
        about_com = T - (h @ h * exact(np.eye(3)) - np.outer(h, h)) / m
        w, u = (np.full((3, robot.nv, TERMS), mpf(0), object) for _ in range(2))
        for k, kind, axis, at in axes[b.index]:
            w[:, k] = axis * (kind != "prismatic")
            u[:, k] = axis if kind == "prismatic" else cross(axis, arm + p - at)
        out.append((m, R, still(about_com), arm, w, u))
    return out


def mass_and_gravity(robot, q):
    """Series of M and g."""
    M, g = np.full((robot.nv, robot.nv, TERMS), mpf(0), object), np.full((robot.nv, TERMS), mpf(0), object)
    for m, R, tensor, _, w, u in bodies(robot, q):
        turned = matmul(matmul(R, tensor), transposed(R))
        M = M + m * matmul(transposed(u), u) + matmul(transposed(w), matmul(turned, w))
        g = g - m * np.tensordot(exact(robot.gravity), u, 1)
    for j in robot.joints:
        M[j.v_index, j.v_index, 0] += mpf(j.armature)
    return M, g


@cache
def christoffel(name):
    """Series of C_ij = 1/2 sum_k (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) v_k."""
    robot = samples.robot(name)
    q, slopes = exact(motion(robot.nv)), []
    for k in range(robot.nv):
        ends = []
        for sign in (1, -1):
            moved = q.copy()
            moved[k, 0] += sign * STEP
            ends.append(mass_and_gravity(robot, moved)[0])
        slopes.append((ends[0] - ends[1]) / (2 * STEP))
    D, v = np.stack(slopes, axis=2), rate(q)  # D[i, j, k] = dM_ij/dq_k
    return sum(product(D[:, :, k] + D[:, k, :] - D[:, k, :].swapaxes(0, 1), v[k]) for k in range(robot.nv)) / 2


@cache
def sum_over_bodies(name, admissible):
    """Series of sum_i J^T (M J' + (M ad(V) - ad(V)^T M) J), J and V at the body's origin in its axes; without the term
    M ad(V) where it is not to be admissible."""
    robot = samples.robot(name)
    q = exact(motion(robot.nv))
    total = 0
    for (m, R, tensor, arm, w, u), b in zip(bodies(robot, q), robot.bodies, strict=True):
        back, h = transposed(R), exact(b.inertia.moment)
        J = np.concatenate([matmul(back, w), matmul(back, u - _crossed(w, arm))])
        H = _skew(h)
        about_origin = tensor[..., 0] - H @ H / m
        inertia = np.block([[about_origin, H], [-H, m * exact(np.eye(3))]])
        inertia = still(inertia)
        V = matmul(J, rate(q))
        W, U = _skew(V[:3]), _skew(V[3:])
        ad = np.concatenate([np.concatenate([W, 0 * W], axis=1), np.concatenate([U, W], axis=1)])
        turning = -matmul(transposed(ad), inertia) + (matmul(inertia, ad) if admissible else 0)
        total = total + matmul(transposed(J), matmul(inertia, rate(J)) + matmul(turning, J[..., : TERMS - 1]))
    return total


def _skew(x):
    x, y, z = x
    return np.array([[0 * x, -z, y], [z, 0 * x, -x], [-y, x, 0 * x]], object)


def _crossed(w, arm):
    """w x arm, column by column."""
    return np.stack([cross(w[:, k], arm) for k in range(w.shape[1])], axis=1)


def derivatives(robot, quantity, method):
    """[derivative 0, 1, ...] of the toolkit at time 0 of the motion."""
    x = motion(robot.nv)
    f = od.function(robot, quantity, order=TOP, method=method)
    V = [factorial(k) * x[:, k] for k in range(1, TERMS)]
    return [y.full() for y in f.call([x[:, 0], *V[: f.n_in() - 1]])]


def able(name, quantity):
    return [m for m, _ in samples.functions_of(samples.robot(name), quantity, TOP)]


def worst(got, series):
    """Largest error of all orders, relative to the largest entry of each."""
    found = [abs(exact(x) - factorial(k) * series[..., k].reshape(x.shape)) for k, x in enumerate(got)]
    return max(float(e.max() / (factorial(k) * abs(series[..., k]).max())) for k, e in enumerate(found))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_mass_matrix_and_gravity_alone(name):
    robot = samples.robot(name)
    M, g = mass_and_gravity(robot, exact(motion(robot.nv)))
    for quantity, series in (("mass_matrix", M), ("gravity", g)):
        tried = able(name, quantity)
        assert len(tried) >= 3
        for method in tried:
            assert worst(derivatives(robot, quantity, method), series) < 1e-11, (quantity, method)


@pytest.mark.slow
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", NAMES)
def test_coriolis_matrix_alone(name):
    """Which matrix a method gives, and that all its derivatives are those of that matrix."""
    robot = samples.robot(name)
    matrices = {
        "christoffel": christoffel(name),
        "admissible": sum_over_bodies(name, True),
        "other": sum_over_bodies(name, False),
    }
    of = dict.fromkeys(("ad", "ad_composite", "ad_taylor"), "christoffel") | {"jacobian_sum": "admissible"}
    of |= {"spatial_admissible": "admissible", "closed_form": "other"}
    assert set(able(name, "coriolis_matrix")) == set(of)
    for method, which in of.items():
        errors = {k: worst(derivatives(robot, "coriolis_matrix", method), x) for k, x in matrices.items()}
        assert errors[which] < 1e-11, (method, errors)
        assert all(e > 1e-3 for k, e in errors.items() if k != which), (method, errors)


@pytest.mark.parametrize("name", NAMES[:1])
def test_reference_matrices_fit_together(name):
    """To 30 digits: M' = C + C^T, and C v the same for all three."""
    robot = samples.robot(name)
    q = exact(motion(robot.nv))
    M, v = mass_and_gravity(robot, q)[0], rate(q)
    C = [christoffel(name), sum_over_bodies(name, True), sum_over_bodies(name, False)]
    size = mpf(10) ** -30 * abs(C[0]).max()
    for x in C[:2]:
        assert abs(rate(M) - (x + transposed(x))[..., : TERMS - 1]).max() < size
    for x in C[1:]:
        assert abs(matmul(x - C[0], v)).max() < size
