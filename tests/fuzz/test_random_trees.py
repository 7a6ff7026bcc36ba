"""Random trees of every kind of joint: dynamics there and back by methods that share little, partials against AD."""

import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from samples import build, functions_of, random_ports, relative

import oc_dyn as od
from oc_dyn.model.joints import KINDS, NQ

TOLERANCE = 1e-8
ONE = [kind for kind in KINDS if NQ.get(kind) == 1]  # one coordinate: they may follow another joint


@st.composite
def robots(draw, most=4):
    n = draw(st.integers(1, most))
    kinds = [draw(st.sampled_from(KINDS)) for _ in range(n)]
    parents = [draw(st.integers(0, k)) for k in range(n)]
    mimic, owners = {}, []
    for k, kind in enumerate(kinds):
        if kind not in ONE:
            continue
        if owners and draw(st.booleans()):
            mimic[k] = (f"joint{draw(st.sampled_from(owners)) + 1}", draw(st.sampled_from([-0.5, 1.0, 2.0])), 0.1)
        else:
            owners.append(k)
    armature = draw(st.booleans()) and not {"planar", "free"} & set(kinds)
    two = any(kind == "free" and parent == 0 for kind, parent in zip(kinds, parents, strict=True))  # it floats already
    floating = not two and draw(st.booleans())
    return build(kinds, parents, draw(st.integers(0, 999)), floating_base=floating, armature=armature, mimic=mimic)


@examples(12)
@given(robots(), st.integers(0, 999))
def test_inverse_dynamics_and_its_rate_by_two_methods(robot, seed):
    pair = dict(functions_of(robot, "inverse_dynamics", 1))
    f, other = pair["taylor"], pair["recursive_spatial" if "recursive_spatial" in pair else "ad_jet_cse"]
    x = random_ports(f, robot, seed)
    a, b = f(**x), other(**x)
    for port in a:
        assert relative(a[port], b[port]) < TOLERANCE, port


@pytest.mark.slow
@examples(12)
@given(robots(), st.integers(0, 999))
def test_forward_after_inverse_by_two_methods(robot, seed):
    inverse = od.function(robot, "inverse_dynamics")
    x = random_ports(inverse, robot, seed)
    tau = inverse(**x)["tau"]
    able = dict(functions_of(robot, "forward_dynamics", 0))
    for method in {"taylor", "articulated_body", "articulated_spatial", "ad_via_inverse"} & set(able):
        dv = able[method](q=x["q"], v=x["v"], tau=tau)["dv"]
        assert relative(inverse(**{**x, "dv": dv})["tau"], tau) < TOLERANCE, method


@pytest.mark.slow
@examples(10)
@given(robots(most=3), st.integers(0, 999))
def test_partials_against_ad(robot, seed):
    for quantity in ("inverse_dynamics_partials", "forward_dynamics_partials"):
        f, ad = od.function(robot, quantity), od.function(robot, quantity, method="ad")
        x = random_ports(f, robot, seed)
        a, b = f(**x), ad(**x)
        for port in a:
            assert relative(a[port], b[port]) < 1e-7, (quantity, port)


@examples(60)
@given(robots(), st.integers(0, 999))
def test_steps_on_the_configurations_are_inverse_to_each_other(robot, seed):
    rng = np.random.default_rng(seed)
    q, step = robot.random_configuration(seed), rng.uniform(-1, 1, robot.nv)
    assert np.abs(robot.difference(q, robot.integrate(q, step)) - step).max() < 1e-9
