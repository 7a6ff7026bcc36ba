"""od.taylor_mode: every operation against repeated AD along polynomials in time, and what it says of ports."""

import math

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.series.elementary import RECURRENCES

x, y = ca.SX.sym("x"), ca.SX.sym("y")
ORDER = 6
OF_ONE = (
    "sqrt exp log sin cos tan asin acos atan sinh cosh tanh asinh atanh erf erfinv fabs sign floor ceil log1p expm1"
)
OF_TWO = "atan2 fmin fmax fmod remainder copysign hypot"
CASES = {name: (getattr(ca, name)(x), 0.37, 0) for name in OF_ONE.split()}
CASES |= {name: (getattr(ca, name)(x, y), 0.7, 0.3) for name in OF_TWO.split()}
CASES |= {f"x^{c}": (x**c, 0.7, 0) for c in (3, 4, 7, 100, -1, -2, -3, 0.5, 1.5, 2.5, -0.5)}
CASES |= {f"0^{c}": (x**c, 0, 0) for c in (1, 2, 3, 5, 8)}
CASES |= {
    "acosh": (ca.acosh(x), 1.7, 0),
    "x^y": (x**y, 0.7, 0.3),
    "2.5^y": (ca.SX(2.5) ** y, 0, 0.3),
    "(-x)^3": (x**3, -0.7, 0),
    "1/x": (1 / x, 0.7, 0),
    "y/x": (y / x, 0.7, 0.3),
    "2 x - y": (2 * x - y + -x, 0.7, 0.3),
    "x x y": (x * x * y + y * y, 0.7, 0.3),
    "if else": (ca.if_else(x > y, ca.sin(x), ca.log(-y)), 0.7, 0.3),
    "and, or, not": (
        ca.if_else(ca.logic_and(x > y, ca.logic_not(ca.logic_or(x < 0, x == y))), ca.sin(x) * y, ca.sqrt(y)),
        *(0.7, 0.3),
    ),
    "le, ne": (ca.if_else(ca.logic_and(x <= y, x != y), y, x * y), 0.7, 0.3),
    "of another": (ca.tanh(ca.sin(x) * y) / (1 + x * x) + ca.sqrt(1 + x**4), 0.7, 0.3),
}


def along_polynomials(f, order, values, derivatives):
    """Derivatives of f by repeated differentiation in time of what it gives along polynomials."""
    t = ca.SX.sym("t")
    curves = [
        ca.DM(v) + sum(d * t**k / math.factorial(k) for k, d in enumerate(ds, 1))
        for v, ds in zip(values, derivatives, strict=True)
    ]
    found = f.call(curves)
    rows = [found]
    for _ in range(order):
        rows.append([ca.jacobian(ca.vec(e), t) for e in rows[-1]])
    numbers = ca.Function("r", [t], [ca.densify(ca.vec(e)) for row in rows for e in row]).call([0])
    return [numbers[k * len(found) + i] for i in range(len(found)) for k in range(order + 1)]


def off(f, order, values, seed=0):
    """Largest error of taylor_mode(f), and whether all is finite."""
    rng = np.random.default_rng(seed)
    derivatives = [[rng.uniform(-0.5, 0.5, f.size_in(i)) for _ in range(order)] for i in range(f.n_in())]
    ports = [a for v, ds in zip(values, derivatives, strict=True) for a in (v, *ds)]
    found = od.taylor_mode(f, order).call(ports)
    expected = along_polynomials(f if f.is_a("SXFunction") else f.expand(), order, values, derivatives)
    pairs = [(np.ravel(a, "F"), np.ravel(b, "F")) for a, b in zip(found, expected, strict=True)]
    return max(np.max(np.abs(a - b)) / max(1, np.max(np.abs(b))) for a, b in pairs)


@pytest.mark.sample(12)
@pytest.mark.parametrize("name", list(CASES))
def test_operation(name):
    expression, *values = CASES[name]
    assert off(ca.Function("f", [x, y], [expression]), ORDER, values) < 1e-12


def test_all_scalar_operations_are_tried():
    seen = set()
    for expression, *_ in CASES.values():
        f = ca.Function("f", [x, y], [expression])
        seen |= {f.instruction_id(k) for k in range(f.n_instructions())}
    assert set(RECURRENCES) - seen <= {ca.OP_ASSIGN, ca.OP_PRINTME, ca.OP_LIFT}
    named = {getattr(ca, n): n for n in dir(ca) if n.startswith("OP_")}
    elementary = {op for op in range(ca.OP_CONST) if op in named} | {ca.OP_ERFINV, ca.OP_PRINTME, ca.OP_LIFT}
    elementary |= {ca.OP_LOG1P, ca.OP_EXPM1, ca.OP_HYPOT, ca.OP_REMAINDER}
    assert elementary <= set(RECURRENCES)


def at(expression, order=3, **values):
    found = od.taylor_mode(ca.Function("f", [x, y], [expression], ["x", "y"], ["z"]), order)(**values)
    return [float(found[n]) for n in ("z", "dz", "d2z", "d3z")[: order + 1]]


def test_singular_points():
    """Derivatives that exist are right, those that do not are not finite, what does not change has zero ones."""
    assert at(x**2.5, 2, x=0, dx=1) == [0, 0, 0]
    assert not math.isfinite(at(x**2.5, 3, x=0, dx=1)[3])
    assert not math.isfinite(at(ca.sqrt(x), 1, x=0, dx=1)[1])
    assert at(ca.sqrt(y) + x, x=0, dx=1, y=4) == [2, 1, 0, 0]
    assert at(ca.sqrt(ca.SX(0) * y + 0) + x, x=0, dx=1) == [0, 1, 0, 0]
    assert at(ca.fabs(x), 1, x=0, dx=1) == [0, 0]
    assert at(ca.fmin(x, 2 * x), 1, x=0, dx=1) == [0, 1.5]
    assert at(ca.if_else(x > 0, ca.log(x), x), x=0, dx=1) == [0, 1, 0, 0]
    assert at(ca.fmax(ca.sqrt(x), 0.5), 1, x=0, dx=1) == [0.5, 0]


def test_a_parameter_as_exponent():
    """One that is no input: at a base of zero too, where derivatives below it exist."""
    p = ca.SX.sym("p")
    rates = od.series.along.time_series(x**p, 3, [(x, ca.SX(1))])
    f = ca.Function("f", [x, p], rates)
    assert [float(r) for r in f(0, 2.5)][:3] == [0, 0, 0]
    assert [float(r) for r in f(-2, 3)] == pytest.approx([-8, 12, -12, 6])


def test_ports_are_named_as_derivatives_by_time():
    f = ca.Function("f", [x, y], [x * y, x], ["a", "b"], ["c", "e"])
    g = od.taylor_mode(f, 2)
    assert g.name() == "taylor2_f"
    assert g.name_in() == ["a", "da", "d2a", "b", "db", "d2b"]
    assert g.name_out() == ["c", "dc", "d2c", "e", "de", "d2e"]
    assert float(g(a=2, da=1, b=3, db=4, d2b=5)["d2c"]) == 2 * 4 + 2 * 5


def test_a_port_that_is_the_derivative_of_another():
    g = od.taylor_mode(ca.Function("f", [x, y], [x * y], ["v", "dv"], ["p"]), 2)
    assert g.name_in() == ["v", "dv", "d2v", "d3v"]
    found = g(v=2, dv=3, d2v=5, d3v=7)
    assert [float(found[n]) for n in ("p", "dp", "d2p")] == [6, 3 * 3 + 2 * 5, 3 * 3 * 5 + 2 * 7]


def test_a_differential_equation():
    """Outputs that are rates of inputs: derivatives of the solution, here cos(t) and -sin(t)."""
    g = od.taylor_mode(ca.Function("f", [x, y], [y, -x], ["x", "y"], ["dx", "dy"]), 8)
    assert g.name_in() == ["x", "y"]
    found = g(x=1, y=0)
    cosine = [0, -1, 0, 1, 0, -1, 0, 1, 0]
    assert [float(found["dx" if k == 1 else f"d{k}x"]) for k in range(1, 10)] == pytest.approx(cosine)
    swing = od.taylor_mode(ca.Function("f", [x, y], [-ca.sin(x)], ["x", "dx"], ["d2x"]), 2)
    assert swing.name_in() == ["x", "dx"]
    found = swing(x=0.3, dx=0.2)
    assert float(found["d3x"]) == pytest.approx(-math.cos(0.3) * 0.2)
    assert float(found["d4x"]) == pytest.approx(math.sin(0.3) * 0.04 + math.cos(0.3) * math.sin(0.3))


def test_a_robot_along_its_velocities():
    """The public function along dq = v is inverse dynamics of that order."""
    robot = od.robots.chain(3)
    g = od.taylor_mode(od.function(robot, "inverse_dynamics"), 2)
    rng = np.random.default_rng(1)
    v, dv, d2v, d3v = rng.uniform(-1, 1, (4, 3))
    q = robot.random_configuration(seed=1)
    found = g(q=q, dq=v, d2q=dv, v=v, dv=dv, d2v=d2v, d3v=d3v)
    expected = od.function(robot, "inverse_dynamics", order=2)(q=q, v=v, dv=dv, d2v=d2v, d3v=d3v)
    for name in ("tau", "dtau", "d2tau"):
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-12, atol=1e-12)


def test_calls_in_scalar_functions_are_written_out():
    inner = ca.Function("inner", [x, y], [ca.sin(x) * y, x], {"never_inline": True})
    a, b = inner(x * y, y)
    f = ca.Function("f", [x, y], [a * b + y])
    assert ca.OP_CALL in [f.instruction_id(k) for k in range(f.n_instructions())]
    plain = ca.Function("f", [x, y], [ca.sin(x * y) * y * (x * y) + y])
    for got, expected in zip(
        od.taylor_mode(f, 4).call([0.1 * k for k in range(10)]),
        od.taylor_mode(plain, 4).call([0.1 * k for k in range(10)]),
        strict=True,
    ):
        assert float(got) == pytest.approx(float(expected), abs=1e-13)


def test_functions_with_derivatives_of_their_own_count_as_their_expressions():
    robot = od.robots.chain(2)
    plain, own = (od.function(robot, "inverse_dynamics", derivatives=d) for d in ("ad", "analytic"))
    counts = [od.taylor_mode(f, 2).n_instructions() for f in (plain, own)]
    assert counts[0] == counts[1]


def test_quadratic_in_the_order():
    """Instructions are a parabola over the order, but for squares, whose terms pair in every other order."""
    f = ca.Function("f", [x, y], [ca.sin(x) * y * y / (2 + ca.cos(y)), ca.atan2(x, y)])
    counts = np.array([od.taylor_mode(f, r).n_instructions() for r in range(3, 12)])
    assert np.abs(np.diff(counts[::2], 3)).max() <= 2
    assert np.abs(np.diff(counts, 3)).max() < 20


# -- refusals -------------------------------------------------------------------------------------------------------


def test_what_is_refused():
    f = ca.Function("f", [x], [x])
    with pytest.raises(od.ShapeError, match=r"taylor_mode: got 3, expected a casadi.Function"):
        od.taylor_mode(3, 1)
    with pytest.raises(od.ShapeError, match="taylor_mode: order is -1"):
        od.taylor_mode(f, -1)
    g = ca.Function("g", [x], [x, x * x], ["x"], ["a", "da"])
    with pytest.raises(od.ShapeError, match=r"taylor_mode of g, order 1: da would be derivatives of two outputs"):
        od.taylor_mode(g, 1)


def test_solvers_and_tables_are_refused_by_name():
    s = ca.MX.sym("s")
    table = ca.interpolant("table", "linear", [[0, 1, 2]], [0, 1, 4])
    root = ca.rootfinder("root", "newton", {"x": x, "p": y, "g": x - y})
    for e, what in ((table(s), r"table \(LinearInterpolant\)"), (root(0, s), r"root \(Newton\)")):
        with pytest.raises(od.OrderError, match=f"no Taylor series of {what}"):
            od.taylor_mode(ca.Function("f", [s], [e]), 2)
