"""ad_taylor of inverse, forward and hybrid dynamics against the analytic Taylor method, at high order."""

import pytest
from samples import ROBOTS, SMALL, random_ports, relative, robot

import oc_dyn as od

NAMES = list(dict.fromkeys([*ROBOTS, *SMALL]))
ORDER = 8


@pytest.mark.few(10)
@pytest.mark.sample("inverse_dynamics-small prismatic")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics", "hybrid_dynamics"])
def test_every_order_agrees_to_twelve_digits(quantity, name):
    options = {"prescribed": ("joint1",)} if quantity == "hybrid_dynamics" else {}
    order = ORDER if name != "transform" else 4  # its screws have derivatives of their own, which are long
    f, expected = (
        od.function(robot(name), quantity, order=order, method=m, **options) for m in ("ad_taylor", "taylor")
    )
    ports = random_ports(f, robot(name), 1)
    found, reference = f(**ports), expected(**ports)
    for port, value in reference.items():
        assert relative(found[port], value) < 1e-12, port


@pytest.mark.parametrize(
    "quantity, counts",
    [
        ("inverse_dynamics", {2: 2914}),
        pytest.param("inverse_dynamics", {6: 11225, 12: 33113}, marks=pytest.mark.slow),
        pytest.param("forward_dynamics", {1: 2699, 4: 8897, 8: 21572}, marks=pytest.mark.slow),
    ],
)
def test_counts_of_the_panda(quantity, counts):
    for order, most in counts.items():
        assert od.function(od.robots.panda(), quantity, order=order, method="ad_taylor").n_instructions() <= most


@pytest.mark.sample("options0")
@pytest.mark.parametrize("options", [{"parameters": "symbolic"}, {"gravity": True}, {"representation": "spatial"}])
def test_options(options):
    r = robot("small floating")
    f, expected = (
        od.function(r, "inverse_dynamics", order=1, method=m, external_wrenches=True, **options)
        for m in ("ad_taylor", "taylor")
    )
    ports = random_ports(f, r, 1)
    found = f(**ports)
    for port, value in expected(**ports).items():
        assert relative(found[port], value) < 1e-12, port
