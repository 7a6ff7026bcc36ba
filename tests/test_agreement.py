"""All methods of every quantity agree, on robots of every kind and at every order that they can do."""

import numpy as np
import pytest
from samples import ROBOTS, functions_of, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.registry import get

ORDERS = {"inverse_dynamics": 5, "forward_dynamics": 4, "mass_matrix": 3, "frame_pose": 4}
ORDERS |= {"coriolis_matrix": 2, "gravity": 3, "bias": 2, "eom_coefficients": 1}
ORDERS |= {"hybrid_dynamics": 2, "frame_twist": 3, "frame_jacobian": 2}
OPTIONS = {
    "frame_pose": {"frame": "link3"},
    "frame_twist": {"frame": "link3", "representation": "hybrid"},
    "frame_jacobian": {"frame": "link3", "representation": "spatial"},
    "hybrid_dynamics": {"prescribed": ("joint1",)},
}
TOLERANCE = 1e-9


def _cases():
    for quantity in od.quantities():
        top = ORDERS[quantity] if get(quantity).max_order is None else get(quantity).max_order
        for order in range(top + 1):
            if order in (0, 1, 2, top):
                yield quantity, order


@pytest.mark.parametrize("name", list(ROBOTS))
@pytest.mark.parametrize("quantity, order", list(_cases()))
def test_methods_agree(quantity, order, name):
    options = OPTIONS.get(quantity, {})
    functions = functions_of(robot(name), quantity, order, **options)
    reference_name, reference = functions[0]
    assert reference.n_out() > 0
    for seed in (1, 2):
        ports = random_ports(reference, robot(name), seed)
        expected = _comparable(quantity, order, ports, reference)
        for method, f in functions[1:]:
            got = _comparable(quantity, order, ports, f)
            assert got.keys() == expected.keys()
            for port in expected:
                error = relative(got[port], expected[port])
                assert error < TOLERANCE, (
                    f"{quantity} order {order} on {name}: {method} and {reference_name} differ in {port} by {error:.1e}"
                )


def _comparable(quantity, order, ports, function):
    """{what: value} that the methods of a quantity must agree on: its outputs, or what is unique about them."""
    outputs = {port: np.array(value) for port, value in function(**ports).items()}
    compare = get(quantity).compare
    return compare(order, ports, outputs) if compare else outputs


@pytest.mark.parametrize("quantity", od.quantities())
def test_two_independent_methods(quantity):
    kinds = [od.registry.get_method(quantity, m).kind for m in od.methods(quantity)]
    assert len(kinds) >= 2 and any(k != "ad" for k in kinds)


@pytest.mark.parametrize("name", list(ROBOTS))
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
def test_methods_agree_with_wrenches(quantity, name):
    functions = functions_of(robot(name), quantity, 2, external_wrenches=True)
    ports = random_ports(functions[0][1], robot(name))
    expected = functions[0][1](**ports)
    for method, f in functions[1:]:
        for port, value in f(**ports).items():
            assert relative(value, expected[port]) < TOLERANCE, (method, port)
