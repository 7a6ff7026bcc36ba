"""od.taylor_mode of MX Functions against that of the same written in scalars, which test_taylor_mode looks at."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od

x, A, s = ca.MX.sym("x", 4), ca.MX.sym("A", 2, 2), ca.MX.sym("s")
xs, As, ss = ca.SX.sym("x", 4), ca.SX.sym("A", 2, 2), ca.SX.sym("s")
a, b = ca.vertsplit(x, 2)
B, Bs = A + 2 * ca.DM.eye(2), As + 2 * ca.DM.eye(2)
Y = ca.sin(x) * s
INNER = ca.Function("inner", [xs, ss], [ca.exp(xs[:2] * ss), xs[0] / ss], ["x", "s"], ["a", "b"])
KEPT = ca.Function("kept", [x, s], [ca.sum1(ca.exp(x * s)), ca.vertcat(x[1:3], s, 7)], {"never_inline": True})
SET = ca.MX(Y)
SET[1] = s
ADDED = ca.MX(Y)
ADDED[[1, 3]] += a

CASES = {
    "sum": Y + 2,
    "mtimes": A @ a,
    "mac": A @ a + b * s,
    "dot": ca.dot(a, ca.sin(b)),
    "norm_2": ca.norm_2(x),
    "norm_fro": ca.norm_fro(A),
    "norm_1": ca.norm_1(x),
    "norm_inf": ca.norm_inf(x),
    "det": ca.det(B),
    "bilin": ca.bilin(A, a, b),
    "rank1": ca.rank1(A, s, a, b),
    "kron": ca.kron(A, A),
    "mmax": ca.mmax(x) - ca.mmin(Y),
    "cross": ca.cross(x[:3], Y[1:]),
    "if_else": ca.if_else(x[0] > s, x[1], Y[2]),
    "pow": x**3 + ca.sumsqr(a**b),
    "repmat": ca.repmat(Y, 1, 3),
    "cat": ca.horzcat(a, Y[:2], A),
    "transpose": A.T @ A,
    "reshape": ca.reshape(ca.horzcat(A, A), 4, 2),
    "diag": ca.diag(a) @ A,
    "diagcat": ca.diagcat(A, s),
    "same": ca.vertcat(Y, ca.sin(Y), Y),
    "sparse": ca.MX(ca.Sparsity.diag(2)) + A * ca.DM.eye(2),
    "cumsum": ca.cumsum(x),
    "call": ca.vertcat(*INNER(Y, s)),
    "call kept": ca.vertcat(*KEPT(Y, s + 1)),
    "split": ca.vertcat(*ca.vertsplit(Y), ca.horzsplit(A)[1] * s),
    "set": SET,
    "added": ADDED,
    "constant": ca.MX(ca.DM([1, 2])),
    "broadcast": ca.atan2(a, s) + ca.hypot(a, s) + ca.fmin(s, b) + s / b,
    "mapped": INNER.map(2)(ca.horzcat(x, Y), ca.horzcat(s, x[1]))[0],
    "accumulated": ca.Function("g", [xs, ss], [ca.sin(xs) * ss]).mapaccum("acc", 3)(x, ca.horzcat(s, s, x[0])),
}
IN_SCALARS = {  # where CasADi cannot expand
    "solve": (ca.solve(B, a), ca.solve(Bs, xs[:2])),
    "solve transposed": (ca.solve(B.T, a) + s, ca.solve(Bs.T, xs[:2]) + ss),
    "logsumexp": (ca.logsumexp(x * s), ca.log(ca.sum1(ca.exp(xs * ss)))),
}


def off(f, reference, order=4):
    g, expected = od.taylor_mode(f, order), od.taylor_mode(reference, order)
    assert g.is_a("MXFunction")
    assert expected.is_a("SXFunction")
    assert (g.name_in(), g.name_out()) == (expected.name_in(), expected.name_out())
    rng = np.random.default_rng(3)
    values = [rng.uniform(0.2, 0.8, g.size_in(i)) for i in range(g.n_in())]
    pairs = [(np.array(p), np.array(q)) for p, q in zip(g.call(values), expected.call(values), strict=True)]
    return max(np.max(np.abs(p - q)) / max(1, np.max(np.abs(q))) for p, q in pairs)


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", list(CASES))
def test_operation(name):
    f = ca.Function("f", [x, A, s], [CASES[name]], ["x", "A", "s"], ["y"])
    scalar = f.expand()
    if name == "call kept":
        inside = ca.Function("kept", [x, s], KEPT.slice("k", [0, 1], [0, 1], {}).call([x, s]))
        scalar = ca.Function("f", [x, A, s], [ca.vertcat(*inside(Y, s + 1))], ["x", "A", "s"], ["y"]).expand()
    assert off(f, scalar) < 1e-12


@pytest.mark.parametrize("name", list(IN_SCALARS))
def test_operation_that_casadi_does_not_expand(name):
    matrices, scalars = IN_SCALARS[name]
    f = ca.Function("f", [x, A, s], [matrices], ["x", "A", "s"], ["y"])
    assert off(f, ca.Function("f", [xs, As, ss], [scalars], ["x", "A", "s"], ["y"])) < 1e-12


def test_calls_stay_calls():
    """What is called several times is made once, and is as long as it is alone."""
    inner = od.function(od.robots.chain(4), "inverse_dynamics")
    q = ca.MX.sym("q", 4)
    f = ca.Function("f", [q], [inner(q, q, q) + inner(2 * q, q, q)])
    g = od.taylor_mode(f, 3)
    called = g.find_functions(0)
    assert len(called) == 1
    assert g.n_instructions() < 100 < called[0].n_instructions()


def test_a_choice_of_functions():
    first = ca.Function("first", [xs], [ca.sin(xs)])
    second = ca.Function("second", [xs], [xs**2])
    index = ca.MX.sym("index")
    chosen = ca.Function.conditional("chosen", [first], second)
    g = od.taylor_mode(ca.Function("f", [index, x], [chosen(index, x)], ["i", "x"], ["y"]), 2)
    values = np.array([0.1, 0.2, 0.3, 0.4])
    np.testing.assert_allclose(g(i=0, x=values, dx=1)["dy"], np.cos(values)[:, None])
    np.testing.assert_allclose(g(i=1, x=values, dx=1)["d2y"], 2 * np.ones((4, 1)))


def test_maps_stay_maps():
    g = od.taylor_mode(INNER.map(3), 2)
    assert [f.class_name() for f in g.find_functions(0)] == ["Map"]


def test_rates_of_inputs_need_scalars():
    f = ca.Function("f", [x], [-x], ["x"], ["dx"])
    with pytest.raises(od.ShapeError, match=r"its output dx is the rate of its input x.*f.expand\(\)"):
        od.taylor_mode(f, 2)
    assert od.taylor_mode(f.expand(), 2).name_in() == ["x"]
