"""First partials: differences along the manifold, options, identities, structural zeros, orders."""

import numpy as np
import pytest
from samples import ROBOTS, build, functions_of, random_ports, relative, robot

import oc_dyn as od
from oc_dyn.model.canonical import canonical

STEP = 1e-5
OPTIONS = {"external_wrenches": True, "friction": True}


def shifted(r, ports, name, e):
    """The ports with one of them moved by e, q along the manifold."""
    value = r.integrate(ports[name], e) if name == "q" else np.ravel(ports[name]) + e
    return {**ports, name: value}


def difference(r, f, ports, name, out):
    """Central differences of output `out` of f by the port `name`."""
    n = r.nv if name == "q" else np.size(ports[name])
    ahead, behind = ([f(**shifted(r, ports, name, s * e))[out] for e in STEP * np.eye(n)] for s in (1, -1))
    columns = [np.array(a) - np.array(b) for a, b in zip(ahead, behind, strict=True)]
    return np.hstack(columns) / (2 * STEP) if columns else np.zeros((0, 0))


@pytest.mark.sample("inverse_dynamics-serial", "inverse_dynamics-helical", "forward_dynamics-planar")
@pytest.mark.parametrize("name", list(ROBOTS))
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
def test_partials_are_slopes(quantity, name):
    r = robot(name)
    f = od.function(r, quantity, **OPTIONS)
    g = od.function(r, f"{quantity}_partials", **OPTIONS)
    ports = random_ports(f, r, 3)
    found, out = g(**ports), f.name_out()[0]
    for x in f.name_in()[:3]:
        slope = difference(r, f, ports, x, out)
        assert relative(found[f"d{out}_d{x}"], slope) < 1e-6, x


@pytest.mark.sample("serial", "helical")
@pytest.mark.parametrize("name", list(ROBOTS))
def test_partials_of_hybrid_dynamics_are_slopes(name):
    r = robot(name)
    options = {"prescribed": [j.name for j in r.joints[1::2]], "external_wrenches": True}
    f = od.function(r, "hybrid_dynamics", **options)
    ports = random_ports(f, r, 3)
    found = od.function(r, "hybrid_dynamics_partials", **options)(**ports)
    assert len(found) == 8
    for out in ("tau_p", "dv_f"):
        for x in ("q", "v", "dv_p", "tau_f"):
            slope = difference(r, f, ports, x, out)
            assert relative(found[f"d{out}_d{x}"], slope) < 2e-5, (out, x)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["spherical", "mimic", "transform"])
def test_partials_of_derivatives_are_slopes(name):
    """Of dtau and d2tau by all that they depend on; the names say which."""
    r = robot(name)
    f, g = (od.function(r, q, order=2) for q in ("inverse_dynamics", "inverse_dynamics_partials"))
    assert {"dtau_dq", "ddtau_dq", "ddtau_dd2v", "dd2tau_dd3v"} < set(g.name_out())
    ports = random_ports(f, r, 3)
    found = g(**ports)
    for k, out in enumerate(("tau", "dtau", "d2tau")):
        for x in f.name_in()[: k + 3]:
            assert relative(found[f"d{out}_d{x}"], difference(r, f, ports, x, out)) < 1e-6, (out, x)


@pytest.mark.sample("partials-inverse_dynamics-floating")
@pytest.mark.parametrize("name", ["floating", "mimic"])
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("kind", ["partials", "adjoint", "lagrangian_hessian"])
def test_methods_agree_with_wrenches_and_friction(kind, quantity, name):
    (first, reference), *others = functions_of(robot(name), f"{quantity}_{kind}", 0, **OPTIONS)
    ports = random_ports(reference, robot(name), 2)
    expected = reference(**ports)
    assert others
    for method, f in others:
        for port, value in f(**ports).items():
            assert relative(value, expected[port]) < 1e-9, (method, first, port)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["serial", "branching", "free", "mimic", "transform"])
def test_identities(name):
    r = robot(name)
    rng = np.random.default_rng(4)
    q, (v, tau, lam) = r.random_configuration(4), rng.normal(size=(3, r.nv))
    dv = od.function(r, "forward_dynamics")(q=q, v=v, tau=tau)["dv"]
    inverse = od.function(r, "inverse_dynamics_partials")(q=q, v=v, dv=dv)
    forward = od.function(r, "forward_dynamics_partials")(q=q, v=v, tau=tau)
    M = np.array(od.function(r, "mass_matrix")(q=q)["M"])
    Minv = np.array(od.function(r, "mass_matrix_inverse")(q=q)["Minv"])
    assert relative(inverse["dtau_ddv"], M) < 1e-12
    assert relative(M @ Minv, np.eye(r.nv)) < 1e-10
    assert np.array_equal(Minv, Minv.T)
    assert relative(forward["ddv_dtau"], Minv) < 1e-11
    for x in "qv":
        J = np.array(inverse[f"dtau_d{x}"])
        assert relative(M @ np.array(forward[f"ddv_d{x}"]), -J) < 1e-9
    adjoint = od.function(r, "inverse_dynamics_adjoint")(q=q, v=v, dv=dv, lam=lam)
    for x in ("q", "v", "dv"):
        assert relative(adjoint[f"adj_{x}"], np.array(inverse[f"dtau_d{x}"]).T @ lam.reshape(-1, 1)) < 1e-11
    adjoint = od.function(r, "forward_dynamics_adjoint")(q=q, v=v, tau=tau, lam=lam)
    for x in ("q", "v", "tau"):
        assert relative(adjoint[f"adj_{x}"], np.array(forward[f"ddv_d{x}"]).T @ lam.reshape(-1, 1)) < 1e-9


@pytest.mark.sample("prismatic")
@pytest.mark.parametrize("name", ["floating", "prismatic"])
def test_hybrid_partials_reach_from_forward_to_inverse(name):
    r = robot(name)
    rng = np.random.default_rng(5)
    q, (v, x) = r.random_configuration(5), rng.normal(size=(2, r.nv))
    everything = [j.name for j in r.joints]
    for method in od.methods("hybrid_dynamics_partials"):
        f = od.function(r, "hybrid_dynamics_partials", method=method)
        free = f(q=q, v=v, tau_f=x)
        given = od.function(r, "hybrid_dynamics_partials", method=method, prescribed=everything)(q=q, v=v, dv_p=x)
        forward = od.function(r, "forward_dynamics_partials")(q=q, v=v, tau=x)
        inverse = od.function(r, "inverse_dynamics_partials")(q=q, v=v, dv=x)
        for by in ("q", "v"):
            assert relative(free[f"ddv_f_d{by}"], forward[f"ddv_d{by}"]) < 1e-10
            assert relative(given[f"dtau_p_d{by}"], inverse[f"dtau_d{by}"]) < 1e-11
        assert relative(free["ddv_f_dtau_f"], forward["ddv_dtau"]) < 1e-10
        assert relative(given["dtau_p_ddv_p"], inverse["dtau_ddv"]) < 1e-11


def related(r):
    """(nv, nv) whether one of two velocities moves what the other carries, or the same joint does."""
    model, out = canonical(r), np.zeros((r.nv, r.nv), bool)
    for i in model.bodies:
        for j in model.support(i):
            a, b = (range(s, s + n) for s, n in (model.coordinates[k][2:] for k in (i, j)))
            out[np.ix_(a, b)] = out[np.ix_(b, a)] = True
    return out


@pytest.mark.sample("composite-mimic", "spatial_vector-planar")
@pytest.mark.parametrize("name", ["branching", "spherical", "planar", "mimic", "cylindrical"])
@pytest.mark.parametrize("method", ["composite", "spatial_vector", "recursive_scalar", "ad"])
def test_branches_do_not_meet(method, name):
    r = robot(name)
    may = related(r)
    assert name == "mimic" or not may.all()
    f = od.function(r, "inverse_dynamics_partials", method=method)
    for k in range(f.n_out()):
        rows, columns = f.sparsity_out(k).get_triplet()
        assert may[rows, columns].all()
    H = od.function(r, "inverse_dynamics_lagrangian_hessian").sparsity_out(0)
    rows, columns = (np.array(x) % r.nv for x in H.get_triplet())
    assert may[rows, columns].all()


def test_order_one_has_the_mass_matrix_and_its_rate():
    r = robot("spherical")
    f = od.function(r, "inverse_dynamics_partials", order=1)
    x = random_ports(f, r, 2)
    out = f(**x)
    mass = od.function(r, "mass_matrix", order=1)(q=x["q"], v=x["v"])
    assert relative(out["ddtau_dd2v"], mass["M"]) < 1e-13
    assert relative(np.array(out["ddtau_ddv"]) - np.array(out["dtau_dv"]), mass["dM"]) < 1e-11


@pytest.mark.slow
def test_what_a_method_cannot_do_is_said():
    r = robot("transform")
    with pytest.raises(od.OrderError, match="composite cannot do robots with a transform joint.*recursive_scalar"):
        od.function(r, "inverse_dynamics_partials", method="composite")
    with pytest.raises(od.OrderError, match="goes up to order 0"):
        od.function(robot("serial"), "inverse_dynamics_partials", order=1, method="spatial_vector")
    assert od.function(r, "inverse_dynamics_partials", order=1).n_out() == 3 + 4  # another method steps in


@pytest.mark.sample("planar", "helical")
@pytest.mark.parametrize("kind", ["cylindrical", "universal", "helical", "planar"])
def test_derivatives_through_a_mass_matrix_of_uneven_zeros(kind):
    """The halves of a mass matrix that AD makes need not have the same entries that are seen to be zero."""
    r = build([kind], [0], seed=0, floating_base=True)
    f, g = (od.function(r, "forward_dynamics_partials", method=m) for m in ("ad_via_inverse", None))
    x = random_ports(f, r, 0)
    found, right = f(**x), g(**x)
    for port in right:
        assert relative(found[port], right[port]) < 1e-9
