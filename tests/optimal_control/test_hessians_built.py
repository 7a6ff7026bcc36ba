"""Programs that are built with the Hessians that are asked for alone."""

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od

ROBOT = od.robots.planar_2r()


def problem(derivatives="analytic", foreign=False):
    """Two links with a cost that is in part squares; foreign: it calls what has no scalar form."""
    ocp = od.Problem(5, 0.8)
    q, v, dv, tau = ocp.rigid_body(ROBOT, derivatives=derivatives, guess=np.array([0.3, -0.4]))
    ocp.limit(-200, tau + 0.1 * v * dv, 200)
    ocp.start({q: [0.1, 0.2], v: 0})
    ocp.goal({q: [0.4, -0.3], v: 0})
    table = ca.interpolant("table", "bspline", [np.linspace(-3, 3, 9)], np.linspace(-3, 3, 9) ** 2)
    ocp.minimize(integral=table(q[0]) if foreign else ca.sin(q[0]) ** 2, squares=ca.vertcat(tau / 10, ca.cos(q[1])))
    return ocp


def hessian_at(made, which):
    """The Hessian of the Lagrangian at an arbitrary point, and the Jacobian."""
    rng, (n, m) = np.random.default_rng(0), made.assembly.size
    functions = made.assembly.cache("ipopt", which)
    x, p, lam = rng.normal(size=n), made.parameters({}), rng.normal(size=m)
    return np.array(functions["nlp_hess_l"](x, p, 0.7, lam)), np.array(functions["nlp_jac_g"](x, p)[1])


@pytest.mark.parametrize("how", [{}, pytest.param({"derivatives": "ad"}, marks=pytest.mark.slow), {"foreign": True}])
def test_one_hessian_is_what_it_is_beside_the_other(how):
    full = problem(**how).transcribed("euler")
    for which, other in (("exact", "gauss_newton"), ("gauss_newton", "exact")):
        made = problem(**how).transcribed("euler", hessian=which)
        for mine, theirs in zip(hessian_at(made, which), hessian_at(full, which), strict=True):
            assert np.abs(theirs).max() > 0.1
            np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-12)
        left = {"exact": made.groups[0].kind.gauss_newton, "gauss_newton": made.groups[0].kind.hessian}[which]
        assert left.nnz_out(0) == 0
        with pytest.raises(od.ShapeError, match=f"without its Hessian '{other}'"):
            made.assembly.cache("ipopt", other)


def test_quasi_newton_builds_no_hessian_and_finds_the_same_optimum():
    exact = problem().solve(method="euler", check="off")
    ocp = problem()
    found = ocp.solve(method="euler", check="off", hessian="limited_memory")
    kinds = [g.kind for g in found.transcribed.groups]
    assert [f.nnz_out(0) for k in kinds for f in (k.hessian, k.gauss_newton)] == [0] * 2 * len(kinds)
    assert found.objective == pytest.approx(exact.objective, rel=1e-6)
    again = ocp.solve(method="euler", check="off", initial=found)  # which needs one
    assert again.transcribed is not found.transcribed
    assert again.objective == pytest.approx(exact.objective, rel=1e-9)


def test_a_program_that_has_all_serves_for_each():
    ocp = problem()
    made = ocp.transcribed("euler")
    assert ocp.transcribed("euler", hessian="limited_memory") is made
    assert ocp.transcribed("euler", hessian="gauss_newton") is made
    with pytest.raises(od.UnknownName, match="did you mean 'exact'"):
        ocp.transcribed("euler", hessian="exakt")
