"""Names of a Problem: what would share a name, and so its numbers, is refused."""

import numpy as np
import pytest

import oc_dyn as od

BASES = ("taylor", "b_spline", "bernstein")


def chain(name, basis, order=2):
    return lambda ocp: ocp.chain(name, 1, order, bounds=(None, 20.0), basis=basis)


def limit(name):
    return lambda ocp: ocp.limit(-9, ocp.state("x"), 9, name=name)


@pytest.mark.parametrize(
    "first, second, words",
    [
        (lambda o: o.parameter("m"), lambda o: o.parameter("m"), "parameter 'm': there is a parameter 'm' already"),
        (lambda o: o.state("m"), lambda o: o.parameter("m"), "parameter 'm': there is a state"),
        (lambda o: o.parameter("m"), lambda o: o.control("m"), "control 'm': there is a parameter"),
        (lambda o: o.varying("m"), lambda o: o.variable("m"), "'m': there is a varying parameter"),
        (lambda o: o.parameter("m"), lambda o: o.integral(1.0, name="m"), "'m': there is a parameter"),
        (lambda o: o.parameter("time"), lambda o: o.time, "'time': there is a parameter"),
        *((chain("q", basis), lambda o: o.state("q"), "state 'q': there is a") for basis in BASES),
        *((chain("q", basis), lambda o: o.varying("d1q"), "'d1q': there is a") for basis in BASES),
        *((lambda o: o.state("q"), chain("q", basis), "chain 'q': there is a state 'q'") for basis in BASES),
        *((lambda o: o.control("d2q"), chain("q", basis), "chain 'q': it takes the name 'd2q'") for basis in BASES),
        *((chain("q", a), chain("q", b), "chain 'q': there is a .* 'q' already") for a in BASES for b in BASES),
        *((chain("q", a), chain("d1q", b), "chain 'd1q': there is a") for a in BASES for b in BASES),
        *((chain("d1q", a), chain("q", b), "it takes the name 'd1q'") for a in BASES for b in BASES),
        *((limit("d1q"), chain("q", basis), "'d1q', and there is a limit 'd1q' already") for basis in BASES[1:]),
        *((chain("q", basis), limit("d1q"), "name of a chain") for basis in BASES[1:]),
        (
            lambda o: o.control("calm_slack"),
            lambda o: o.limit(0, o.state("x"), np.inf, soft=(1, 0), name="calm"),
            "'calm_slack': there is a control",
        ),
    ],
)
def test_one_name_for_one_thing(first, second, words):
    ocp = od.Problem(3, 1.0)
    first(ocp)
    with pytest.raises(od.ShapeError, match=words):
        second(ocp)


def test_a_refused_chain_leaves_nothing_behind():
    ocp = od.Problem(3, 1.0)
    ocp.state("d1q")
    for basis in BASES:
        with pytest.raises(od.ShapeError, match="already"):
            ocp.chain("q", 1, 2, basis=basis)
    assert [v.name for v in (*ocp.description.states, *ocp.description.controls)] == ["d1q"]


def test_names_that_are_found_are_free_ones():
    ocp = od.Problem(3, 1.0)
    ocp.parameter("integral"), ocp.varying("slack"), ocp.parameter("maximum")
    x = ocp.state("x")
    assert ocp.integral(x).name() == "integral_2"
    assert ocp.limit(0, x, np.inf, soft=(1, 0)).name() == "slack_2"
    ocp.minimize(maximum=x)
    assert "maximum_2" in [v.name for v in ocp.description.states]


def test_limits_may_share_names_and_have_those_of_states():
    ocp = od.Problem(3, 1.0)
    x, v = ocp.chain("x", 1, 1)
    ocp.limit(-9, x, 9, name="x")
    ocp.limit(-9, v, 9, name="fast")
    ocp.phase(2, 1.0)
    ocp.limit(-9, v, 9, name="fast")
    ocp.limit(-9, 2 * v, 9)
    ocp.bound("fast", -1, 1)
    ocp.start({x: 0})
    ocp.minimize(integral=(v - 3) ** 2)
    assert ocp.solve()[v][-1] == pytest.approx(1.0, abs=1e-6)
