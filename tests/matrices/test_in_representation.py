"""Matrices, bias, gravity and partials with representation=: of the spatial or hybrid twist of a floating base."""

import casadi as ca
import numpy as np
import pytest
from samples import build, functions_of, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.errors import ShapeError, UnknownName
from oc_dyn.lie import se3, so3
from oc_dyn.registry import get

SEEN = ("spatial", "hybrid")
QUANTITIES = ("mass_matrix", "coriolis_matrix", "gravity", "bias", "dynamic_matrices", "inverse_dynamics_partials",
              "mass_matrix_inverse")  # fmt: skip
ROBOTS = ("small floating", "two bases")
_TWO = []


def floating(name):
    if name == "small floating":
        return robot(name)
    if not _TWO:
        _TWO.append(build(["free", "free", "revolute"], [0, 0, 1], seed=22))
    return _TWO[0]


def values(r, quantity, x, order=0, **options):
    f = od.function(r, quantity, order=order, **options)
    return {k: y.full() for k, y in f(**{k: x[k] for k in f.name_in()}).items()}


@pytest.fixture(scope="module", params=[(n, s) for n in ROBOTS for s in SEEN], ids=lambda x: "-".join(x))
def case(request):
    name, seen = request.param
    r = floating(name)
    return r, {"representation": seen}, random_ports(od.function(r, "inverse_dynamics", order=2), r, 4)


@pytest.mark.few(8)
@pytest.mark.sample("gravity-spatial", "mass_matrix_inverse-hybrid")
@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("quantity", QUANTITIES)
def test_methods_agree(quantity, seen):
    r, order = robot("small floating"), 1 if get(quantity).max_order != 0 else 0
    functions = [f for k in range(order + 1) for f in functions_of(r, quantity, k, representation=seen)]
    assert len(functions) >= 2
    found = [(method, f, f(**(x := random_ports(f, r, 3))), x) for method, f in functions]
    compare = get(quantity).compare
    for method, f, y, x in found:
        reference = next(b for _, g, b, _ in reversed(found) if g.name() == f.name())
        a, b = ({k: np.array(v) for k, v in z.items()} for z in (y, reference))
        if compare:
            k = int(f.name()[-1])
            a, b = (compare(k, x, z) for z in (a, b))
        for port, value in a.items():
            assert relative(value, b[port]) < 1e-9, (method, port)


@pytest.mark.sample(1)
def test_matrices_are_those_of_inverse_dynamics(case):
    """Whose ports of motion and torques are converted another way, by definitions in time."""
    r, seen, x = case
    tau = values(r, "inverse_dynamics", x, 1, **seen)
    f = od.function(r, "inverse_dynamics", **seen)
    M = values(r, "mass_matrix", x, 1, **seen)
    assert relative(M["M"], f.jacobian()(x["q"], x["v"], x["dv"], ca.DM(r.nv, 1))[2]) < 1e-11
    h, g = values(r, "bias", x, 1, **seen), values(r, "gravity", x, 1, **seen)
    assert relative(h["h"], values(r, "inverse_dynamics", {**x, "dv": 0 * x["dv"]}, **seen)["tau"]) < 1e-11
    rest = values(r, "inverse_dynamics", {**x, "v": 0 * x["v"], "dv": 0 * x["dv"]}, **seen)["tau"]
    assert relative(g["g"], rest) < 1e-11
    assert relative(M["M"] @ x["d2v"] + M["dM"] @ x["dv"] + h["dh"], tau["dtau"]) < 1e-11
    assert relative(values(r, "mass_matrix_inverse", x, **seen)["Minv"] @ M["M"], np.eye(r.nv)) < 1e-9


@pytest.mark.sample("christoffel-small floating-spatial")
@pytest.mark.parametrize("name", ["christoffel", "garofalo", "kumar_mueller"])
def test_coriolis_matrix(case, name):
    r, seen, x = case
    C = values(r, "coriolis_matrix", x, 1, coriolis=name, **seen)
    M, h, g = (values(r, k, x, 1, **seen) for k in ("mass_matrix", "bias", "gravity"))
    assert relative(C["C"] @ x["v"], h["h"] - g["g"]) < 1e-11
    assert relative(C["dC"] @ x["v"] + C["C"] @ x["dv"], h["dh"] - g["dg"]) < 1e-11
    assert (relative(C["C"] + C["C"].T, M["dM"]) < 1e-11) == (name != "kumar_mueller")


def stepped(r, q, e, seen):
    """q after the base of every free joint on the root took the step e in the representation."""
    q, out = np.array(q, float), e.copy()
    for b in r.bodies:
        if b.parent == 0 and b.joint.kind == "free":
            rows = slice(b.joint.v_index, b.joint.v_index + 6)
            at = q[b.joint.q_index : b.joint.q_index + 7]
            R, p = se3.compose((ca.DM(b.rotation), ca.DM(b.translation)), (so3.quat_to_rot(ca.DM(at[:4])), at[4:]))
            R, p, (w, u) = R.full(), np.array(p).ravel(), np.split(e[rows], 2)
            moved = u + np.cross(w, p) if seen == "spatial" else u  # how the body's origin moves in root axes
            out[rows] = np.concatenate([R.T @ w, R.T @ moved])
    return r.integrate(q, out)


@pytest.mark.slow
def test_partials_are_differences(case):
    r, seen, x = case
    f = od.function(r, "inverse_dynamics", order=1, **seen)
    J = values(r, "inverse_dynamics_partials", x, 1, **seen)
    x = {k: np.array(x[k]).ravel() for k in f.name_in()}

    def at(name, e):
        q = stepped(r, x["q"], e, seen["representation"]) if name == "q" else x[name] + e
        y = f(**{**x, name: q})
        return np.vstack([y["tau"], y["dtau"]]).ravel()

    for name in f.name_in():
        steps = 1e-6 * np.eye(r.nv)
        found = np.column_stack([(at(name, e) - at(name, -e)) / 2e-6 for e in steps])
        for k, y in enumerate(("tau", "dtau")):
            if f"d{y}_d{name}" in J:
                assert relative(J[f"d{y}_d{name}"], found[k * r.nv : (k + 1) * r.nv]) < 1e-6, (y, name)


@pytest.mark.sample(1)
def test_rate_of_the_torques_is_their_partials_along_the_motion(case):
    r, seen, x = case
    rng = np.random.default_rng(1)
    x = {**x, "w_ext": rng.normal(size=(6, len(r.bodies))), "dw_ext": np.zeros((6, len(r.bodies)))}
    options = {"external_wrenches": True, "friction": True, **seen}
    J = values(r, "inverse_dynamics_partials", x, 1, **options)
    tau = values(r, "inverse_dynamics", x, 1, **options)
    assert relative(J["dtau_dq"] @ x["v"] + J["dtau_dv"] @ x["dv"] + J["dtau_ddv"] @ x["d2v"], tau["dtau"]) < 1e-10


def test_parameters_stay_inputs():
    r, seen = robot("small floating"), {"representation": "spatial"}
    f = od.function(r, "mass_matrix", parameters="symbolic", **seen)
    q = r.random_configuration(seed=1)
    M = od.function(r, "mass_matrix", **seen)(q=q)["M"]
    assert relative(f(q=q, params=r.parameters)["M"], M) < 1e-12
    assert relative(f(q=q, params=2 * r.parameters)["M"], 2 * M) < 1e-12  # it has no armature


def test_ports_say_it():
    _, (M,) = od.ports(robot("small floating"), "mass_matrix", representation="hybrid")
    assert "root_joint in root axes, at the body's origin" in M.meaning
    _, (M,) = od.ports(robot("small floating"), "mass_matrix")
    assert "root axes" not in M.meaning


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_what_is_refused(quantity):
    with pytest.raises(UnknownName, match="'world'.*body, spatial, hybrid"):
        od.function(robot("small floating"), quantity, representation="world")


def test_a_fixed_base_and_body_change_nothing():
    fixed, free = robot("small serial"), robot("small floating")
    for r, seen in ((fixed, "spatial"), (free, "body")):
        q = r.random_configuration(seed=2)
        a, b = (od.function(r, "mass_matrix", representation=x)(q=q)["M"] for x in (seen, None))
        assert np.array_equal(np.array(a), np.array(b))


@pytest.mark.parametrize("quantity", ["mass_matrix", "bias", "inverse_dynamics_partials"])
def test_of_robots_with_loops(quantity):
    """Whose velocities are those of independent coordinates."""
    with pytest.raises(ShapeError, match="representation is not there for robots with loops"):
        od.function(od.robots.four_bar(), quantity, representation="spatial")
