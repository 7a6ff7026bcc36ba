"""All methods of every quantity agree, on robots of every kind and at every order that they can do.

A Function of order r gives all lower orders too, so every method is tried once, at the highest order that it goes to.
Quaternions of another length count as normalised, by every method: where values, derivatives along the motion and
partials on the tangent space do not change with their lengths, they agree there, too. Likewise kilometres from the
root's origin, where what does not depend on the place must not lose the digits of the distance.
"""

import numpy as np
import pytest
from samples import (
    ROBOTS,
    SMALL,
    carried_far,
    functions_of,
    random_ports,
    relative,
    robot,
    scaled_quaternions,
    scene,
)

import oc_dyn as od
from oc_dyn.registry import get, get_method

# highest order compared on small robots, and on all robots, if it is not (2, 1), or what the quantity goes to
ORDERS = {
    "inverse_dynamics": (5, 2),
    "forward_dynamics": (5, 1),
    "hybrid_dynamics": (5, 1),
    "inverse_dynamics_partials": (2, 0),
    "forward_dynamics_partials": (3, 0),
    "forward_dynamics_adjoint": (3, 0),
    "forward_dynamics_lagrangian_hessian": (3, 0),
    "inverse_dynamics_lagrangian_hessian_product": (3, 0),
    "forward_dynamics_lagrangian_hessian_product": (3, 0),
    "hybrid_dynamics_partials": (3, 0),
    "hybrid_dynamics_adjoint": (3, 0),
    "hybrid_dynamics_lagrangian_hessian": (3, 0),
    "mass_matrix": (3, 2),
    "gravity": (3, 1),
    "bias": (3, 1),
    "frame_pose": (5, 2),
    "frame_twist": (4, 2),
    "frame_jacobian": (3, 1),
    "slotine_li_regressor": (2, 0),
    "slotine_li_torque": (4, 1),
    "forward_dynamics_wrench_partials": (2, 0),
    "kinetic_energy": (3, 1),
    "potential_energy": (3, 1),
    "momentum": (3, 1),
    "com": (3, 1),
    "com_jacobian": (3, 1),
    "centroidal_momentum_matrix": (3, 1),
}
OPTIONS = {
    "frame_pose": {"frame": "link2"},
    "frame_twist": {"frame": "link2", "representation": "hybrid"},
    "frame_jacobian": {"frame": "link2", "representation": "spatial"},
    "frame_velocity_partials": {"frame": "link2", "representation": "hybrid"},
    "frame_acceleration_partials": {"frame": "link2", "representation": "body"},
}
OPTIONS |= {q: {"prescribed": ("joint1",)} for q in od.quantities("robot") if q.startswith("hybrid_dynamics")}
DISTANCES = ("distances", *(f"distances_{x}" for x in ("partials", "adjoint", "lagrangian_hessian")))
OPTIONS |= {quantity: {"scene": scene()} for quantity in DISTANCES}
TOLERANCE = 1e-9
PLACED = ("potential_energy", "momentum", *DISTANCES)  # about the root's origin, or what stands there
POSITIONS = {"frame_pose": ("C", "p"), "com": ("c",)}  # ports that say where the robot is
QUANTITIES = od.quantities("robot")
# in the default run: every quantity, on all robots in turn but for second partials, which are long on most
TURNS = [
    f"{quantity}-{'helical' if 'second' in quantity else list(ROBOTS)[k % len(ROBOTS)]}"
    for k, quantity in enumerate(QUANTITIES)
]


def _orders(quantity):
    return ORDERS.get(quantity, (2, 1))


@pytest.mark.few(220)
@pytest.mark.sample(*TURNS)
@pytest.mark.parametrize("name", list(ROBOTS))
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_methods_agree(quantity, name):
    _agree(quantity, robot(name), _orders(quantity)[1], name)


@pytest.mark.few(60)
@pytest.mark.sample(
    "inverse_dynamics-small serial",
    "frame_pose-small branching",
    "hybrid_dynamics-small prismatic",
)
@pytest.mark.parametrize("name", list(SMALL))
@pytest.mark.parametrize("quantity", [q for q in QUANTITIES if get(q).max_order != 0])
def test_methods_agree_at_high_order(quantity, name):
    _agree(quantity, robot(name), _orders(quantity)[0], name)


def _agree(quantity, r, top, name):
    """Every method against the default one, each at the highest order it goes to."""
    options = OPTIONS.get(quantity, {})
    tried = 0
    for method in od.methods(quantity):
        record = get_method(quantity, method)
        order = min(x for x in (top, record.max_order, get(quantity).max_order) if x is not None)
        if record.refusal(r, order):
            continue
        reference = od.function(r, quantity, order=order, **options)
        f = od.function(r, quantity, order=order, method=method, **options)
        tried += f is not reference
        for seed in (1, 2):
            ports = random_ports(reference, r, seed)
            got, expected = (_comparable(quantity, order, ports, x) for x in (f, reference))
            assert got.keys() == expected.keys()
            assert got
            for port in expected:
                error = relative(got[port], expected[port])
                assert error < (record.tolerance or TOLERANCE), (
                    f"{quantity} order {order} on {name}: {method} differs from the default in {port} by {error:.1e}"
                )
        if f.rotations:
            _same_for_all_lengths(f, r, ports, record.tolerance or TOLERANCE)
        if quantity not in PLACED and OPTIONS.get(quantity, {}).get("representation") != "spatial":
            _same_far_away(f, r, ports, record.tolerance or 1e-10, POSITIONS.get(quantity, ()))
    assert tried, f"{quantity} has one method only on {name}"


def _same_for_all_lengths(f, r, ports, tolerance):
    free, expected = f.normalizing(), f(**ports)
    for norm in (0.9, 1.1):
        found = free(**{**ports, "q": scaled_quaternions(r, ports["q"], norm)})
        for port, value in expected.items():
            error = relative(found[port], value)
            assert error < tolerance, f"{f.name()} at norm {norm}: {port} is off by {error:.1e}"


def _same_far_away(f, r, ports, tolerance, places):
    q = carried_far(r, ports["q"])
    if np.array_equal(q, ports["q"]):
        return
    expected, found = f(**ports), f(**{**ports, "q": q})
    for port in set(expected) - set(places):
        error = relative(found[port], expected[port])
        assert error < tolerance, f"{f.name()} at 10 km: {port} is off by {error:.1e}"


def _comparable(quantity, order, ports, function):
    """{what: value} that the methods of a quantity must agree on: its outputs, or what is unique about them."""
    outputs = {port: np.array(value) for port, value in function(**ports).items()}
    compare = get(quantity).compare
    return compare(order, ports, outputs) if compare else outputs


@pytest.mark.parametrize("quantity", od.quantities())
def test_two_independent_methods(quantity):
    kinds = [get_method(quantity, m).kind for m in od.methods(quantity)]
    assert len(kinds) >= 2
    assert any(k != "ad" for k in kinds)


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_two_methods_where_screws_change(quantity):
    """On a robot of transform joints too, and one of them is not AD. Lagrangian Hessians have AD of two formulations
    there, which test_lagrangian_hessian compares with differences."""
    able = [m for m in od.methods(quantity) if get_method(quantity, m).refusal(robot("transform"), 0) is None]
    kinds = {get_method(quantity, m).kind for m in able}
    assert len(able) >= 2, able
    assert kinds - {"ad"} or "lagrangian_hessian" in quantity, able


@pytest.mark.sample("inverse_dynamics-helical", "forward_dynamics-planar")
@pytest.mark.parametrize("name", list(ROBOTS))
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics", "slotine_li_torque"])
def test_methods_agree_with_wrenches(quantity, name):
    functions = functions_of(robot(name), quantity, 1, external_wrenches=True)
    ports = random_ports(functions[0][1], robot(name))
    expected = functions[0][1](**ports)
    for method, f in functions[1:]:
        for port, value in f(**ports).items():
            assert relative(value, expected[port]) < TOLERANCE, (method, port)
