"""merged: equal subexpressions become one node, as by casadi.cse, and values keep their bits."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import subexpressions as module
from oc_dyn.subexpressions import merged

UNARY = [ca.sin, ca.cos, ca.tan, ca.fabs, ca.sqrt, ca.exp, ca.log1p, ca.expm1, ca.floor]
UNARY += [ca.sign, ca.tanh, ca.atan, lambda x: -x, lambda x: 2 * x, lambda x: x * x, lambda x: 1 / x]
BINARY = [lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y, ca.atan2, ca.fmin, ca.fmax]
BINARY += [
    ca.hypot,
    ca.copysign,
    ca.fmod,
    ca.remainder,
    lambda x, y: x < y,
    lambda x, y: x <= y,
    lambda x, y: ca.if_else(x, y, 0),
]
BINARY += [lambda x, y: ca.logic_and(x, y), lambda x, y: ca.logic_or(x, y), lambda x, y: x == y, ca.power]


def _program(seed, size=4000, rows=40):
    """Random expressions with many equal ones, among them sums and products in either order."""
    rng = np.random.default_rng(seed)
    x = ca.SX.sym("x", rows)
    numbers = rng.uniform(-1, 1, 3)
    pool = [x, x[::-1], *(ca.SX(n) * ca.cos(x) for n in (numbers[0], numbers[0] + 1e-12, *numbers))]
    while len(pool) * rows < size:
        a, b = (pool[i] for i in rng.integers(len(pool), size=2))
        kind = rng.integers(6)
        for _ in range(2):
            pool.append([a + b, b * a, a - b, ca.sin(a), ca.fmax(a, b), b + a][kind])
            a, b = (a, b) if kind in (2, 3, 4) else (b, a)
    y = ca.vertcat(*pool[-20:])
    return x, [ca.sin(y), ca.diagcat(pool[-1], ca.SX(2, 2), pool[-2][:3]), ca.SX(3, 0), pool[-3][0]]


def _function(x, y):
    return ca.Function("f", [x], list(y))


def _count(x, y):
    return ca.Function("f", x, list(y)).n_instructions()


def _same_bits(f, g, x):
    for a, b in zip(f.call([x]), g.call([x]), strict=True):
        assert a.sparsity() == b.sparsity()
        assert np.array_equal(np.array(a), np.array(b), equal_nan=True)  # but for the sign of a zero


@pytest.fixture
def ours(monkeypatch):
    """Whatever the length; and CasADi's own is not to be asked."""
    monkeypatch.setattr(module, "SHORT", 0)
    monkeypatch.setattr(module, "_WIDE", 0)
    monkeypatch.setattr(module.ca, "cse", None)


@pytest.mark.parametrize("seed", [pytest.param(s, marks=[pytest.mark.slow] * (s > 0)) for s in range(8)])
def test_values_keep_their_bits_and_instructions_are_those_of_casadi(seed, monkeypatch):
    monkeypatch.setattr(module, "SHORT", 1000)
    x, y = _program(seed)
    before, after, other = _function(x, y), _function(x, merged(y)), _function(x, ca.cse(y))
    assert before.n_instructions() > module.SHORT
    assert after.n_instructions() == other.n_instructions() < before.n_instructions()
    _same_bits(before, after, np.random.default_rng(seed).uniform(-1, 1, x.numel()))


@pytest.mark.parametrize("number", range(len(UNARY) + len(BINARY)))
def test_every_operation_is_read_and_made_again(ours, number):
    x, y = ca.SX.sym("x", 8), ca.SX.sym("y", 8)

    def f(x, y):
        a, b = x * y, x + y
        return UNARY[number](a) if number < len(UNARY) else BINARY[number - len(UNARY)](a, b)

    expression = ca.vertcat(f(x, y) + 1, ca.sin(f(x, y)), f(x, y) - 2)
    (got,) = merged([expression])
    both = ca.vertcat(x, y)
    _same_bits(_function(both, [expression]), _function(both, [got]), np.random.default_rng(0).uniform(-2, 2, 16))
    assert _count([both], [got]) < _count([both], [expression])


def test_what_is_not_equal_stays_apart(ours):
    x = ca.SX.sym("x", 300)
    given = ca.vertcat(x - 2, 2 - x, x / 3, 3 / x, ca.atan2(x, 3), ca.atan2(3, x), x * 0.1, x * (0.1 + 1e-15), x + x)
    (got,) = merged([ca.vertcat(given, ca.sin(x), ca.sin(x) + 1)])
    f = _function(x, [got])
    at = np.linspace(0.1, 1, 300)
    expected = [at - 2, 2 - at, at / 3, 3 / at, np.arctan2(at, 3), np.arctan2(3, at), at * 0.1, at * (0.1 + 1e-15)]
    assert np.allclose(np.array(f(at)).ravel()[:2400], np.concatenate(expected), rtol=1e-15)
    assert not np.array_equal(np.array(f(at))[1800:2100], np.array(f(at))[2100:2400])


def test_what_gets_simpler_is_merged_again(ours):
    x, y = ca.SX.sym("x", 200), ca.SX.sym("y", 200)
    (got,) = merged([ca.sin((x * y + 1) - (x * y + 1) + x) + ca.sin(x) + ca.sqrt(x * y) * ca.sqrt(x * y)])
    zero_is_left_out = ca.sin(x) + ca.sin(x) + ca.sqrt(x * y) ** 2
    assert _count([x, y], [got]) <= _count([x, y], [zero_is_left_out]) + 400


def test_squares_of_what_turns_out_to_be_negated_are_merged(ours):
    x = ca.SX.sym("x", 200)
    negated = [-ca.sin(x), ca.exp(ca.cos(x)) - ca.exp(ca.cos(x)) - ca.sin(x)]
    (got,) = merged([ca.vertcat(ca.sin(x) ** 2, negated[0] * negated[1], *negated)])
    assert _count([x], [got]) == 1600  # of each number: as input, sin, sq, negated, four outputs
    assert np.array_equal(_function(x, [got])(0.5)[:400], np.full((400, 1), np.sin(0.5) ** 2))


@pytest.mark.parametrize("times", [lambda x, y: x * y, lambda x, y: x + y], ids=["product", "sum"])
def test_squares_of_what_is_written_in_another_order_are_merged(times, ours):
    x = ca.SX.sym("x", 200)
    (got,) = merged(
        [ca.vertcat(times(ca.sin(x), ca.cos(x)) ** 2, times(ca.sin(x), ca.cos(x)) * times(ca.cos(x), ca.sin(x)))]
    )
    assert _count([x], [got]) == 1400  # of each number: as input, sin, cos, their product, its square, two outputs
    u, v = np.sin(0.5), np.cos(0.5)
    assert np.allclose(_function(x, [got])(0.5), times(u, v) ** 2, rtol=1e-14)


@pytest.mark.parametrize(
    "name", ["(@1*@2)", "@3", "output[0][0] = @1", "a\nb", "\nAlgorithm:\n", "3.5", "sin(@1)", "é"]
)
def test_names_of_symbols_may_look_like_a_listing(name, monkeypatch):
    monkeypatch.setattr(module, "SHORT", 0)
    x, a = ca.SX.sym("x", 40), ca.SX.sym(name)
    given = ca.vertcat(ca.sin(x * a) + x * 3.5, a * x, ca.sin(x) * ca.sin(x), a, a + ca.sin(a * x))
    (got,) = merged([given])
    f, g = (ca.Function("f", [ca.vertcat(x, a)], [y]) for y in (given, got))
    _same_bits(f, g, np.linspace(-2, 2, 41))
    assert g.n_instructions() <= _count([ca.vertcat(x, a)], [ca.cse(given)])


def test_what_calls_functions_and_matrix_expressions_are_left_to_casadi(monkeypatch):
    monkeypatch.setattr(module, "SHORT", 0)
    x, z = ca.SX.sym("x", 300), ca.MX.sym("z", 3)
    inner = ca.Function("inner", [x], [ca.sin(x)], {"never_inline": True})
    f = _function(x, merged([inner(x) + ca.cos(x) * ca.cos(x)]))
    assert np.allclose(np.array(f(np.full(300, 0.3))), np.sin(0.3) + np.cos(0.3) ** 2)
    assert isinstance(merged(ca.sin(z)), ca.MX)
    assert ca.is_equal(ca.DM(merged(ca.DM([1, 2]))), ca.DM([1, 2]))
    assert np.array_equal([np.array(ca.DM(y)).item() for y in merged((ca.SX(2), ca.DM(3)))], [2, 3])


@pytest.mark.slow
def test_long_chains_are_left_to_casadi(monkeypatch):
    x, asked = ca.SX.sym("x"), []
    y = x
    for _ in range(module.SHORT):
        y = ca.sin(y + ca.cos(y)) + ca.cos(y)
    own = ca.cse
    monkeypatch.setattr(module.ca, "cse", lambda y: asked.append(1) or own(y))
    assert _count([x], merged([y])) == 1 + 4 * module.SHORT + 1
    assert asked


def test_operations_are_written_differently_but_for_powers():
    x, y = ca.SX.sym("x"), ca.SX.sym("y")
    written = {}
    for op in sorted({getattr(ca, name) for name in dir(ca) if name.startswith("OP_")}):
        for make in (lambda op=op: ca.SX.unary(op, x), lambda op=op: ca.SX.binary(op, x, y)):
            try:
                f = ca.Function("f", [x, y], [make()], module._OPTIONS)
            except RuntimeError:  # it is no operation of scalars, or of as many
                continue
            lines = f.str(True).splitlines()[-f.n_instructions() :]
            ids = [f.instruction_id(k) for k in range(f.n_instructions())]
            for line, kind in zip(lines, ids, strict=True):
                if kind not in (ca.OP_CONST, ca.OP_INPUT, ca.OP_OUTPUT):
                    written.setdefault(line.partition(" = ")[2], set()).add(kind)
    assert len(written) > 40
    assert all(len(kinds) == 1 or kinds <= set(module._POWERS) for kinds in written.values())


def test_powers_of_constants_and_of_expressions_stay_what_they_are(ours):
    x, y = ca.SX.sym("x", 20), ca.SX.sym("y", 20)
    given = ca.vertcat((x * y) ** 2.5, (y * x) ** 2.5 + (x + y) ** y, (y + x) ** y - x**3.5, ca.SX(2) ** (x * y))
    (got,) = merged([given])
    f, g = (ca.Function("f", [x, y], [z, ca.jacobian(z, ca.vertcat(x, y))]) for z in (given, got))
    at = np.random.default_rng(0).uniform(0.1, 1, (2, 20))
    for a, b in zip(f.call([*at]), g.call([*at]), strict=True):
        assert np.allclose(np.array(a), np.array(b), rtol=1e-14)
    assert g.n_instructions() < f.n_instructions()


def test_nothing_is_made_again_where_nothing_is_equal(monkeypatch, ours):
    x = ca.SX.sym("x", 500)
    y = ca.sin(x) * ca.DM(np.arange(1, 501))
    monkeypatch.setattr(module, "_made", None)
    assert ca.is_equal(merged(y), y, 0)


def test_equal_ones_that_are_outputs_alone(ours):
    """Nothing is computed from them, so that nothing has to be made again."""
    x = ca.SX.sym("x", 50)
    a, b = ca.sin(x), ca.sin(x)
    found = merged([ca.vertcat(a, ca.cos(x)), b])
    f = ca.Function("f", [x], found)
    assert f.n_instructions() == ca.Function("f", [x], [ca.vertcat(a, ca.cos(x)), a]).n_instructions()
    at = np.linspace(0, 1, 50)
    assert np.array_equal(np.array(f(at)[1]).ravel(), np.sin(at))


def test_a_listing_that_is_not_as_expected_is_left_to_casadi(monkeypatch):
    monkeypatch.setattr(module, "SHORT", 0)
    x, y = _program(3)
    listed = ca.Function.str
    for change in (("*@", "+@"), ("@12 ", "@13 "), (";", ";\n"), ("Algorithm", "Code")):

        class Changed(ca.Function):
            def str(self, *args, change=change):
                return listed(self, *args).replace(*change)

        with monkeypatch.context() as patch:
            patch.setattr(module.ca, "Function", Changed)
            got = merged(y)
        _same_bits(_function(x, y), _function(x, got), np.linspace(-1, 1, x.numel()))


@pytest.mark.slow
def test_functions_of_robots_have_the_instructions_that_casadi_leaves(monkeypatch):
    asked = [("inverse_dynamics_partials", 2), ("joint_torque_regressor", 2), ("eom_coefficients", 3)]

    def counts(length):
        monkeypatch.setattr(module, "SHORT", length)
        panda = od.robots.panda()
        return [od.function(panda, name, order=order, cache=False).n_instructions() for name, order in asked]

    assert counts(3000) == counts(np.inf)


@pytest.mark.slow
def test_equal_results_that_nothing_is_made_of():
    """The outputs alone are equal: no instruction has to be made again."""
    x = ca.SX.sym("x", 2)
    y = x
    for _ in range(module.SHORT):
        y = ca.vertcat(ca.sin(y[0]), y[1])
    first, second = merged(ca.vertcat(y[0] + x[1], y[0] + x[1])).elements()
    assert ca.is_equal(first, second, 0) or first.element_hash() == second.element_hash()
