"""Articulated inertias are those of order 0 at every order of forward dynamics (Ali et al. 2026, Lemma 2)."""

from itertools import pairwise

import casadi as ca
import pytest
from samples import random_ports, relative, robot

import oc_dyn as od
from oc_dyn.forward_dynamics import articulated_spatial as method
from oc_dyn.model.quaternions import quaternions

NAMES = ["serial", "floating", "spherical"]
TOP = 3


def functions(name, quantity, method):
    return [od.function(robot(name), quantity, order=k, method=method) for k in range(TOP + 1)]


def divisors(f):
    """Set of the values that anything is divided by, each by the number of the instruction that makes it."""
    made, out = {}, set()
    for k in range(f.n_instructions()):
        op, inputs = f.instruction_id(k), f.instruction_input(k)
        if op == ca.OP_DIV:
            out.add(made[inputs[1]])
        if op == ca.OP_INV:
            out.add(made[inputs[0]])
        if op != ca.OP_OUTPUT:
            made[f.instruction_output(k)[0]] = k
    return out


def test_divisors_are_counted_as_values():
    x = ca.SX.sym("x", 3)
    f = ca.Function("f", [x], [x[0] / x[1] + x[2] / x[1], 1 / (x[0] + x[2]), x[1] / x[2]])
    assert len(divisors(f)) == 3


@pytest.mark.sample("serial")
@pytest.mark.parametrize("name", NAMES)
def test_nothing_new_is_factorised_at_higher_orders(name):
    """One pivot of D for every velocity, whatever the order: all orders divide by the same numbers. The square of a
    quaternion's length is one more."""
    counts = [len(divisors(f)) for f in functions(name, "forward_dynamics", "articulated_spatial")]
    lengths = len(quaternions(robot(name)))
    assert counts == [robot(name).nv + lengths] * (TOP + 1)


@pytest.mark.parametrize("order", [0, 3])
def test_every_joint_is_factorised_once(order, monkeypatch):
    calls = []
    factor = method.factor
    monkeypatch.setattr(method, "factor", lambda A: calls.append(A.shape) or factor(A))
    f = od.function(robot("floating"), "forward_dynamics", order=order, method="articulated_spatial", name="counted")
    assert sorted(calls) == [(1, 1)] * 3 + [(6, 6)]
    g = od.function(robot("floating"), "forward_dynamics", order=order)
    x = random_ports(f, robot("floating"))
    assert relative(f(**x)[f"d{order + 1}v" if order else "dv"], g(**x)[f"d{order + 1}v" if order else "dv"]) < 1e-9


@pytest.mark.sample("serial")
@pytest.mark.parametrize("name", NAMES)
def test_higher_orders_cost_bias_passes_only(name):
    """What an order adds to that of inverse dynamics, whose screws and momenta both need, is two sweeps over the
    bodies: the same at every order, linear in the bodies, and far less than articulated inertias."""
    r = robot(name)
    forward, inverse = (
        [f.n_instructions() for f in functions(name, *which)]
        for which in (("forward_dynamics", "articulated_spatial"), ("inverse_dynamics", "recursive_spatial"))
    )
    extra = [a - b for a, b in zip(forward, inverse, strict=True)]
    sweeps = [b - a for a, b in pairwise(extra)]
    assert max(sweeps[1:]) - min(sweeps[1:]) <= 2
    per_velocity = 12 * 6  # products of U, K and S with a vector, forward and backward
    assert 0 < sweeps[-1] < len(r.bodies) * 2 * 66 + r.nv * per_velocity  # 66: a 6 x 6 matrix times a vector
    assert extra[0] > 1.5 * sweeps[-1]
