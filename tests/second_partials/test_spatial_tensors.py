"""The tensor algebra and the derivative identities that second partials of rigid-body dynamics rest on.

Source: Singh et al. 2023, Table II (M1 to M27 but for M18 and M22) and appendix B (K1 to K16).
"""

import casadi as ca
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from samples import build

from oc_dyn.kinematics.recursive_body import body_poses
from oc_dyn.lie.se3 import Ad, Ad_inv, ad
from oc_dyn.model.canonical import canonical

# -- Table II --------------------------------------------------------------------------------------------------


def skew(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def crm(v):
    """v x, for motions."""
    return np.block([[skew(v[:3]), np.zeros((3, 3))], [skew(v[3:]), skew(v[:3])]])


def crf(v):
    """v x*, for forces."""
    return -crm(v).T


def bar(f):
    """f x-bar*: takes a motion v to v x* f."""
    return -np.block([[skew(f[:3]), skew(f[3:])], [skew(f[3:]), np.zeros((3, 3))]])


def pages(matrix_of, U):
    """The tensor whose page k is made of column k of U."""
    return np.stack([matrix_of(u) for u in U.T], axis=2)


def times(a, b):
    """Product of a tensor and a matrix, eq. 18, or of a matrix and a tensor, eq. 20."""
    return np.einsum("ilk,lj->ijk", a, b) if a.ndim == 3 else np.einsum("il,ljk->ijk", a, b)


def T(A):
    return A.transpose(1, 0, 2)


def R(A):
    return A.transpose(0, 2, 1)


def RT(A):
    return T(R(A))


def B(I, v):
    """Body Coriolis matrix, eq. 14."""
    return 0.5 * (crf(v) @ I - I @ crm(v) + bar(I @ v))


def table(seed):
    """{name: (left, right)} with random matrices."""
    rng = np.random.default_rng(seed)
    u, v, w, f = rng.normal(size=(4, 6))
    U, V, W, F = (rng.normal(size=(6, n)) for n in (2, 3, 4, 5))
    root = rng.normal(size=(6, 6))
    I, lam = root @ root.T, rng.normal()
    A, Y = rng.normal(size=(4, 3)), rng.normal(size=(3, 5, 2))
    mU, mV, fU, bF = pages(crm, U), pages(crm, V), pages(crf, U), pages(bar, F)
    BV, BU, BW = (pages(lambda x: B(I, x), X) for X in (V, U, W))
    column = lambda x: x[:, None]  # noqa: E731  a vector as a matrix of one column
    return {
        "M1": (fU, -T(mU)),
        "M2": (-times(V.T, fU), T(times(mU, V))),
        "M3": (-times(times(V.T, fU), F), times(T(times(mU, V)), F)),
        "M4": (R(times(mU, column(v)))[:, :, 0], -crm(v) @ U),
        "M5": (times(fU, F), R(times(bF, U))),
        "M6": (times(bF, U), R(times(fU, F))),
        "M7": (pages(crm, lam * U), lam * mU),
        "M8": (times(mU, V), -R(times(mV, U))),
        "M9": (pages(crm, crm(v) @ U), times(crm(v), mU) - times(mU, crm(v))),
        "M10": (pages(crf, crm(v) @ U), times(crf(v), fU) - times(fU, crf(v))),
        "M11": (
            pages(bar, R(times(fU, column(f)))[:, :, 0]),
            times(fU, bar(f)) - times(bar(f), mU),
        ),
        "M12": (T(times(fU, F)), -times(F.T, mU)),
        "M13": (times(V.T, times(fU, F)), times(RT(times(mV, U)), F)),
        "M13, second": (times(V.T, times(fU, F)), T(times(F.T, R(times(mV, U))))),
        "M14": (crf(v) @ F, R(times(bF, column(v)))[:, :, 0]),
        "M15": (bar(f) @ U, R(times(fU, column(f)))[:, :, 0]),
        "M16": (times(V.T, R(times(fU, F))), R(times(RT(times(mV, U)), F))),
        "M17": (times(I, R(times(fU, F))), R(times(I, times(fU, F)))),
        "M19": (times(I, R(times(mU, V))), R(times(I, times(mU, V)))),
        "M20": (T(times(A, Y)), times(T(Y), A.T)),
        "M21": (times(F.T, times(mU, V)), -T(times(V.T, R(times(bF, U))))),
        "M23": (B(I, v) @ w, B(I, w) @ v - I @ (crm(v) @ w)),
        "M24": (u @ B(I, v) @ w, -(v @ B(I, u) @ w)),
        "M25": (times(T(BV), W), -R(times(T(BW), V))),
        "M26": (times(BV, W), R(times(BW, V)) - times(times(I, mV), W)),
        "M27": (times(U.T, R(times(BV, W))), -T(times(V.T, R(times(BU, W))))),
    }


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_tensor_algebra(seed):
    for name, (left, right) in table(seed).items():
        assert np.allclose(left, right, rtol=0, atol=1e-9 * np.abs(left).max()), name


# -- appendix B ------------------------------------------------------------------------------------------------

ROBOT = build(["spherical", "revolute", "free", "prismatic", "helical"], [0, 1, 2, 1, 4], seed=31)
MODEL = canonical(ROBOT)
KINDS = ("S", "Sd", "own", "psi", "psi2", "I", "IC", "BC", "a", "Ia", "f", "fC", "v", "B")


def _fields(q, v, a):
    """{(kind, body): SX matrix}, in the ground frame; Sd, psi, psi2 are S', Psi', Psi''; own is S_i qd_i x S_i."""
    x = {("v", 0): ca.SX(6, 1), ("a", 0): ca.vertcat(0, 0, 0, -MODEL.gravity)}
    poses, qd, qdd = body_poses(MODEL, q), MODEL.joint_v(v), MODEL.joint_v(a)
    for i in MODEL.bodies:
        p, inward = MODEL.parent[i], Ad_inv(poses[i])
        S = x["S", i] = Ad(poses[i]) @ MODEL.S[i]
        x["v", i] = x["v", p] + S @ qd[i]
        x["Sd", i], x["own", i] = ad(x["v", i]) @ S, ad(S @ qd[i]) @ S
        x["a", i] = x["a", p] + S @ qdd[i] + x["Sd", i] @ qd[i]
        x["psi", i] = ad(x["v", p]) @ S
        x["psi2", i] = ad(x["a", p]) @ S + ad(x["v", p]) @ x["psi", i]
        I = x["I", i] = inward.T @ MODEL.M[i] @ inward
        momentum, V = I @ x["v", i], ad(x["v", i])
        x["Ia", i] = I @ x["a", i]
        x["f", i] = x["Ia", i] - V.T @ momentum
        x["B", i] = 0.5 * (-V.T @ I - I @ V + _bar(momentum))
    for kind in ("I", "B", "f"):
        for i in MODEL.reversed_bodies:
            x[f"{kind}C", i] = sum((x[f"{kind}C", c] for c in MODEL.children[i]), x[kind, i])
    return {(kind, i): x[kind, i] for kind in KINDS for i in MODEL.bodies}


def _bar(f):
    n, f = ca.skew(f[:3]), ca.skew(f[3:])
    return -ca.vertcat(ca.horzcat(n, f), ca.horzcat(f, ca.SX(3, 3)))


def _evaluator():
    """casadi.Function (q, v, a) -> values, derivatives by steps of q, derivatives by v of all fields, stacked."""
    q, v, a = (ca.SX.sym(*x) for x in (("q", ROBOT.nq), ("v", ROBOT.nv), ("a", ROBOT.nv)))
    fields = _fields(q, v, a)
    stacked = ca.vertcat(*(ca.vec(ca.densify(x)) for x in fields.values()))
    step = ca.jacobian(ROBOT.configuration_rate(q, v), v)
    found = [stacked, ca.jacobian(stacked, q) @ step, ca.jacobian(stacked, v)]
    return ca.Function("fields", [q, v, a], found, {"cse": True}), [(key, x.shape) for key, x in fields.items()]


@pytest.fixture(scope="module")
def fields():
    """Function of a seed: ({(kind, body): value}, (kind, body, column) -> derivative by a step of q, and by v)."""
    function, shapes = _evaluator()

    def at(seed):
        rng = np.random.default_rng(seed)
        v, a = rng.normal(size=(2, ROBOT.nv))
        arrays = [np.array(x) for x in function(ROBOT.random_configuration(seed), v, a)]
        values, by_q, by_v, start = {}, {}, {}, 0
        for key, shape in shapes:
            end = start + shape[0] * shape[1]
            for into, array in zip((values, by_q, by_v), arrays, strict=True):
                into[key] = array[start:end].reshape((*shape, -1), order="F")
            start = end
        return {key: x[:, :, 0] for key, x in values.items()}, by_q, by_v

    return at


def _identities(x, i, j, t):
    """{(name, kind): derivative of `kind` of body i by coordinate t of joint j}; by q, and from K14 on by v."""
    below = j in MODEL.support(i)  # j is i or above it
    beyond = i in MODEL.support(j) and i != j  # j hangs on i
    s, psi, psi2 = (x[kind, j][:, t] for kind in ("S", "psi", "psi2"))
    k = i if below else j  # the composite that moves

    def zero_unless_below(value):
        return value if below else 0 * value

    def composite(value):
        return value if below or beyond else 0 * value

    S, I, IC, BC, fC = x["S", i], x["I", i], x["IC", k], x["BC", k], x["fC", k][:, 0]
    f, a, v = (x[kind, i][:, 0] for kind in ("f", "a", "v"))
    moved = {
        ("K1", "S"): crm(s) @ S,
        ("K2", "Sd"): crm(psi) @ S + crm(s) @ x["Sd", i],
        ("K3", "own"): crm(s) @ x["own", i],
        ("K4", "psi"): crm(psi) @ S + crm(s) @ x["psi", i],
        ("K5", "I"): crf(s) @ I - I @ crm(s),
        ("K7", "a"): psi2 - crm(v) @ psi - crm(a) @ s,
        ("K8", "Ia"): crf(s) @ (I @ a) + I @ psi2 - I @ (crm(v) @ psi),
        ("K9", "psi2"): crm(psi2) @ S + 2 * crm(psi) @ x["psi", i] + crm(s) @ x["psi2", i],
        ("K11", "f"): I @ psi2 + bar(f) @ s + 2 * x["B", i] @ psi,
    }
    moved = {key: zero_unless_below(value) for key, value in moved.items()}
    moved["K6", "IC"] = composite(crf(s) @ IC - IC @ crm(s))
    moved["K10", "BC"] = composite(B(IC, psi) + crf(s) @ BC - BC @ crm(s))
    moved["K12", "fC"] = composite(IC @ psi2 + bar(fC) @ s + 2 * BC @ psi)
    moved["K13", "S"] = zero_unless_below(-(S.T @ crf(s)).T)
    speeds = {
        ("K14", "Sd"): zero_unless_below(crm(s) @ S),
        ("K15", "psi"): zero_unless_below(crm(s) @ S) if i != j else 0 * S,
        ("K16", "BC"): composite(B(IC, s)),
    }
    return moved, speeds


@pytest.mark.slow
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_derivative_identities(fields, seed):
    x, by_q, by_v = fields(seed)
    for i in MODEL.bodies:
        for j in MODEL.bodies:
            start, size = MODEL.coordinates[j][2:]
            for t in range(size):
                for table, derivatives in zip(_identities(x, i, j, t), (by_q, by_v), strict=True):
                    for (name, kind), value in table.items():
                        got = derivatives[kind, i][:, :, start + t].reshape(value.shape)
                        assert np.allclose(got, value, rtol=0, atol=1e-9 * max(1, np.abs(value).max())), (name, i, j, t)


def test_every_case_occurs():
    """The robot of the identities has joints above, below and beside each other, some of several coordinates."""
    sizes = [MODEL.coordinates[i][3] for i in MODEL.bodies]
    assert max(sizes) == 6
    assert sizes.count(1) >= 2
    pairs = [(i, j) for i in MODEL.bodies for j in MODEL.bodies]
    related = [j in MODEL.support(i) or i in MODEL.support(j) for i, j in pairs]
    assert any(related)
    assert not all(related)
