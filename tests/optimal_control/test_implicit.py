"""Multiple shooting by implicit Runge-Kutta steps: stiff dynamics, derivatives of what is solved inside a step."""

import pickle

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import OrderError, ShapeError, UnknownName
from oc_dyn.optimal_control.integrators import METHODS, gauss, implicit, order_of_cost, radau

FAST = 1e4  # [1/s]


def stiff(nodes, scale=1.0):
    """x' = -1e4 (x - cos t) + u: the motion follows cos t + 1e-4 u. Of another unit by the scale."""
    ocp = od.Problem(nodes, 2.0)
    x, u = ocp.state("x", scale=scale), ocp.control("u", lower=-2000 * scale, upper=2000 * scale)
    ocp.rate(x, -FAST * (x - scale * ca.cos(ocp.time)) + u)
    ocp.start({x: scale})
    ocp.minimize(integral=((x / scale - 0.5) ** 2 + 1e-9 * (u / scale) ** 2))
    return ocp


def reference():
    """Least cost of the stiff problem with x = cos t + 1e-4 u, controls free at every time, by quadrature."""
    t = np.linspace(0, 2, 20001)
    # the least of (c + k u - 0.5)^2 + 1e-9 u^2 for every t
    c, k = np.cos(t), 1 / FAST
    u = np.clip(-k * (c - 0.5) / (k**2 + 1e-9), -2000, 2000)
    return np.trapezoid((c + k * u - 0.5) ** 2 + 1e-9 * u**2, t)


@pytest.mark.sample(1)
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_stiff_dynamics(scale):
    """Intervals of a twentieth of a second, 500 times what an explicit step may have."""
    solution = stiff(40, scale).solve(method="implicit", check="raise")
    assert solution.objective == pytest.approx(reference(), rel=2e-3)
    explicit = stiff(40, scale).solve(method="rk4", raises=False, check="off")
    assert not explicit.success or explicit.check().worst > 0.5


@pytest.mark.sample(1)
@pytest.mark.parametrize("degree", [1, 2, 3])
@pytest.mark.parametrize("scheme, direct", [("radau", radau), ("gauss", gauss)])
def test_it_is_collocation_without_the_unknowns(scheme, direct, degree):
    """The same equations solved inside a step, or by the solver of the program."""
    for ocp in (stiff(8), pendulum(8)):
        found = [
            ocp.solve(method=method, solver_options={"tol": 1e-11}, check="off")
            for method in (implicit(degree, scheme=scheme), direct(degree, 0))
        ]
        assert found[0].objective == pytest.approx(found[1].objective, rel=1e-6)
        assert found[0].x == pytest.approx(found[1].x, abs=1e-5)
        assert found[0].iterations < 100


def pendulum(nodes):
    ocp = od.Problem(nodes, 2.0)
    q, v = ocp.state("q", guess=lambda s: 2 * s), ocp.state("v")
    u = ocp.control("u", lower=-3, upper=3)
    ocp.rate(q, v)
    ocp.rate(v, u - ca.sin(q) - 0.1 * v * ca.fabs(v))
    ocp.start({q: 0, v: 0})
    ocp.goal({q: 2, v: 0})
    ocp.minimize(integral=u**2)
    return ocp


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", [implicit(2), implicit(3, 2), implicit(1, scheme="gauss")], ids=str)
def test_derivatives_are_exact(method):
    """Jacobian and Hessian of a stage by central differences."""
    kind = pendulum(4).transcribed(method).groups[0].kind
    rng = np.random.default_rng(0)
    z, p = rng.normal(size=kind.nx + kind.nu), np.zeros(kind.value.numel_in(1))
    s = np.full(kind.value.numel_in(2), 0.25)
    multipliers = rng.normal(size=1), rng.normal(size=kind.n_next), rng.normal(size=kind.ng)

    def value(z):
        return np.concatenate([y.full().ravel() for y in kind.value(z, p, s)])

    def slope(z):
        whole = kind.gradient(z, p, s).full().ravel() * multipliers[0]
        return whole + kind.jacobian(z, p, s).full().T @ np.concatenate(multipliers[1:])

    def differences(f, d=1e-5):
        return np.array([(f(z + d * e) - f(z - d * e)) / 2 / d for e in np.eye(len(z))]).T

    assert kind.jacobian(z, p, s).full() == pytest.approx(differences(value), abs=1e-8)
    upper = kind.hessian(z, p, s, *multipliers).full()
    assert np.triu(upper) == pytest.approx(np.triu(differences(slope)), abs=1e-7)
    assert np.abs(upper).max() > 1e-2


def test_it_takes_few_newton_iterations_of_ipopt():
    """With exact derivatives the pendulum takes as many iterations as by explicit steps, or so."""
    counts = {m: pendulum(20).solve(method=m).iterations for m in ("rk4", "implicit")}
    assert counts["implicit"] <= counts["rk4"] + 3


@pytest.mark.sample(2)
@pytest.mark.parametrize("solver", ["fatrop", "sqpmethod"])
def test_every_solver(solver):
    found = pendulum(12).solve(method="implicit", solver=solver)
    assert found.objective == pytest.approx(pendulum(12).solve(method=radau(2, 0)).objective, rel=1e-5)


@pytest.mark.slow
def test_more_steps_are_more_accurate():
    defects = [pendulum(6).solve(method=implicit(2, k), check="off").check(1e-7).defect for k in (1, 2, 4)]
    assert np.log2(np.array(defects[:-1]) / defects[1:]) == pytest.approx(3, abs=0.7)


def test_where_newton_fails_there_is_no_number():
    """x' = x^2 from 3 over one second has no end: it is no number, not the last iterate."""
    ocp = od.Problem(1, 1.0)
    x = ocp.state("x")
    ocp.rate(x, x**2)
    ocp.start({x: 3})
    kind = ocp.transcribed("implicit").groups[0].kind
    assert np.isfinite(kind.value([0.1], [], [1.0])[0].full()).all()
    assert not np.isfinite(kind.value([3.0], [], [1.0])[0].full()).any()
    assert not ocp.solve(method="implicit", raises=False, check="off").success


def test_free_time_several_phases_and_chains():
    ocp = od.Problem(4, (0.1, 5.0))
    x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    y, _, jerk = ocp.chain("y", 1, 2)
    for number in range(2):
        if number:
            ocp.phase(4, (0.1, 5.0))
        ocp.rate(x, v)
        ocp.rate(v, u)
        ocp.minimize(integral=1 + 1e-6 * jerk**2)
    ocp.start({x: 0, v: 0, y: 0})
    ocp.goal({x: 1, v: 0, y: 1})
    solution = ocp.solve(method="implicit")
    assert solution.duration == pytest.approx(2, abs=1e-4)


def test_methods_are_values():
    assert implicit(2) == METHODS["implicit"]
    assert implicit(2, 3).with_degree(3) == implicit(3, 3)
    assert implicit(2, 3, "gauss").with_degree(1) == implicit(1, 3, "gauss")
    assert (implicit(2).order, implicit(2, scheme="gauss").order) == (3, 4)
    assert order_of_cost("implicit") == 2
    solution = pendulum(6).solve(method=implicit(3), check="off")
    other = pickle.loads(pickle.dumps(solution))
    assert other.method == implicit(3)
    assert other.check().worst == pytest.approx(solution.check().worst)
    with pytest.raises(OrderError, match="graph='sx'"):
        pendulum(4).transcribed("implicit", graph="sx")
    with pytest.raises(ShapeError, match="implicit: degree"):
        implicit(0)
    with pytest.raises(UnknownName, match="scheme of implicit"):
        implicit(2, scheme="lobatto")


@pytest.mark.slow
def test_it_can_be_written_as_c():
    assert pendulum(4).solve(method="implicit", compiled=True).objective == pytest.approx(
        pendulum(4).solve(method="implicit").objective, rel=1e-6
    )
