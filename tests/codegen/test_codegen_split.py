"""split: the same numbers from parts of bounded length."""

import re

import casadi as ca
import numpy as np
import pytest
from samples import random_ports, relative, robot

import oc_dyn as od
from oc_dyn.codegen.build import find_compiler
from oc_dyn.codegen.source import c_source
from oc_dyn.codegen.split import split

QUANTITIES = ["inverse_dynamics_partials", "forward_dynamics", "inverse_dynamics_second_partials"]


def parts_of(f):
    return [
        f.instruction_MX(k).which_function() for k in range(f.n_instructions()) if f.instruction_id(k) == ca.OP_CALL
    ]


@pytest.mark.sample(1)
@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("limit", [100, 700])
def test_parts_give_the_same_numbers(quantity, limit):
    r = robot("floating")
    f = od.function(r, quantity)
    g = split(f, limit)
    parts = parts_of(g)
    assert len(parts) > 1
    assert all(p.n_instructions() <= limit for p in parts)
    assert sum(p.n_instructions() for p in parts) < 2.5 * f.n_instructions()
    assert len({p.name() for p in parts}) == len(parts)
    assert (g.name(), g.name_in(), g.name_out()) == (f.name(), f.name_in(), f.name_out())
    x = random_ports(f, r)
    for port, value in f(**x).items():
        assert g(**x)[port].sparsity() == value.sparsity()
        assert relative(g(**x)[port], value) < 1e-15
    with pytest.raises(od.ShapeError, match="joint1"):  # the checks of ports are still there
        g(*[np.zeros(2)] * f.n_in())


def test_parts_can_be_differentiated():
    r = robot("serial")
    f = od.function(r, "forward_dynamics")
    x = random_ports(f, r)
    jacobians = []
    for h in (f, split(f, 100)):
        q = ca.MX.sym("q", r.nq)
        J = ca.Function("J", [q], [ca.jacobian(h(**{**x, "q": q})["dv"], q)])
        jacobians.append(J(x["q"]))
    assert relative(*jacobians) < 1e-12


def test_outputs_of_any_kind():
    """Inputs and constants as outputs, one value at several places, no nonzeros at all, written in any order."""
    x, y = ca.SX.sym("x", 4), ca.SX.sym("y", ca.Sparsity.lower(3))
    z = x[0]
    for k in range(60):
        z = ca.sin(z + x[k % 4]) * y.nz[k % 6]
    late = ca.vertcat(x[1], z, 7, z, z + 1)
    sparse = ca.SX(3, 3)
    sparse[2, 1], sparse[0, 2] = z * z, ca.fmax(z, x[2])
    f = ca.Function("f", [x, y], [late, sparse, x, ca.SX(2, 2), 3, y], ["x", "y"], list("abcdef"))
    g = split(f, 20)
    assert len(parts_of(g)) > 5
    rng = np.random.default_rng(0)
    given = [rng.normal(size=4), ca.DM(y.sparsity(), rng.normal(size=6))]
    for a, b in zip(f.call(given), g.call(given), strict=True):
        assert a.sparsity() == b.sparsity()
        assert relative(a, b) == 0


def test_c_of_parts_has_no_tests_and_no_copies():
    """What a compiler spends its time on: a branch for every number that is read or written."""
    f = od.function(robot("floating"), "inverse_dynamics_partials")
    g = split(f, 100)
    text = c_source([g], "code")
    parts = re.findall(rf"^/\* {f.name()}_ocdyn\d+:.*?^}}$", text, re.MULTILINE | re.DOTALL)
    assert len(parts) == len(parts_of(g)) > 10
    assert all("\nCASADI_APART int casadi_f" in part and "?" not in part and "if" not in part for part in parts)
    assert text.count(" ? res[") > 5
    assert "if (res[0]!=0) res[0][0]=" in c_source([f], "code")  # others may be called without an output


@pytest.mark.slow
def test_parts_within_other_functions(tmp_path):
    """Results of parts may be read again where somebody else calls them: in C too, with and without their chain."""
    try:
        find_compiler()
    except od.SolveError:
        pytest.skip("needs a C compiler")
    r = robot("floating")
    f = od.function(r, "inverse_dynamics_partials")
    g = split(f, 100)
    x = [ca.MX.sym(n, *g.size_in(i)) for i, n in enumerate(g.name_in())]
    functions = []
    for inlined in (False, True):
        J, K, L = ca.Function.call(g, x, inlined, not inlined)
        functions.append(ca.Function(f"user_{inlined}".lower(), x, [J, J @ K + J, L, K[3:5, 1], ca.vec(L)]))
        functions += [
            ca.Function(f"some_{inlined}".lower(), x, [K]),
            ca.Function(f"slope_{inlined}".lower(), x, [ca.jtimes(ca.vec(K), x[0], ca.DM.ones(*g.size_in(0)))]),
        ]
        zero = ca.Function.call(g, [x[0], ca.MX(*g.size_in(1)), x[2]], inlined, not inlined)
        functions.append(ca.Function(f"at_rest_{inlined}".lower(), x, [zero[1]]))
    point = list(random_ports(f, r).values())
    for user, compiled in zip(functions, od.compile(functions, flags="-O0", cache=tmp_path), strict=True):
        for a, b in zip(compiled.call(point), user.call(point), strict=True):
            assert relative(a, b) < 1e-13
        if compiled.n_out() == 1:
            continue
        only_last = od.numpy_call(compiled.slice("last", [0, 1, 2], [2]))
        assert relative(only_last(*[p.ravel() for p in point]), user.call(point)[2]) < 1e-13


def test_what_is_not_split():
    f = od.function(robot("serial"), "inverse_dynamics")
    assert split(f, f.n_instructions()) is f
    x = ca.MX.sym("x", 2)
    g = ca.Function("g", [x], [ca.sin(x)])
    assert split(g, 10) is g
    for limit in (9, 0, 2.5, True, None):
        with pytest.raises(od.ShapeError, match="at least 10"):
            split(f, limit)
    with pytest.raises(od.ModelError, match="got int"):
        split(3)
    s, free = ca.SX.sym("s"), ca.SX.sym("free")
    z = s
    for _ in range(20):
        z = ca.sin(z) * free
    with pytest.raises(od.ShapeError, match="free symbols"):
        split(ca.Function("h", [s], [z], {"allow_free": True}), 10)
