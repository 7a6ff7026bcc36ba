"""Robots with loops: registered derivatives, second partials, partials of hybrid dynamics, coefficients of motion."""

import casadi as ca
import numpy as np
import pytest
from loops.linkages import NAMES, largest, linkage, state
from samples import scaled_quaternions

import oc_dyn as od
from oc_dyn.derivatives import check_derivatives
from oc_dyn.lie.jets import total

OPTIONS = {
    "inverse": ("inverse_dynamics", {}),
    "inverse, order 1": ("inverse_dynamics", {"order": 1}),
    "inverse, wrenches": ("inverse_dynamics", {"external_wrenches": True, "friction": True}),
    "forward": ("forward_dynamics", {"friction": True}),
    "forward, order 1": ("forward_dynamics", {"order": 1}),
    "forward, guess": ("forward_dynamics", {"q_guess": True}),
}


def taken(f, ports, lam):
    """(Jacobian, gradient and Hessian of lam' f by all ports, names of the Functions called) that CasADi takes of f."""
    x = ca.MX.sym("x", sum(p.size for p in ports))
    parts = ca.vertsplit(x, np.cumsum([0, *(p.size for p in ports)]).tolist())
    given = [ca.reshape(part, *f.size_in(k)) for k, part in enumerate(parts)]
    y = ca.veccat(*ca.Function.call(f, given))
    H, g = ca.hessian(ca.dot(ca.DM(lam), y), x)
    made = ca.Function("taken", [x], [ca.jacobian(y, x), g, H])
    found = [np.array(z) for z in made(np.concatenate([p.ravel(order="F") for p in ports]))]
    return found, [g.name() for g in made.find_functions()]


@pytest.mark.few(14)
@pytest.mark.sample("inverse-four_bar", "forward, guess-four_bar")
@pytest.mark.parametrize("name", [n for n in NAMES if n != "gough_stewart"])  # whose AD takes gigabytes
@pytest.mark.parametrize("case", OPTIONS)
def test_registered_derivatives_equal_ad(case, name):
    robot, (quantity, options) = linkage(name), OPTIONS[case]
    f = od.function(robot, quantity, derivatives="analytic", **options)
    rng = np.random.default_rng(0)
    ports = [rng.normal(size=f.size_in(k)) for k in range(f.n_in())]
    ports[0] = scaled_quaternions(robot, state(robot, 0)[0], 1.3)
    if "q_guess" in options:
        ports[-1] = np.array(robot.home)
    lam = rng.normal(size=sum(f.numel_out(k) for k in range(f.n_out())))
    found, names = taken(f, ports, lam)
    expected, _ = taken(f.twin, ports, lam)
    assert any(x.startswith("jac_adj1_") for x in names)  # the registered ones
    assert max(largest(x, y) for x, y in zip(found, expected, strict=True)) < 1e-9


@pytest.mark.parametrize(
    "quantity, options, words",
    [
        ("mass_matrix", {}, "mass_matrix has no registered derivatives"),
        ("inverse_dynamics", {"actuated": ("crank",)}, "actuated"),
        ("forward_dynamics", {"parameters": "inertia"}, "parameters"),
        ("hybrid_dynamics", {}, "some outputs repeat others"),
    ],
)
def test_what_is_not_registered_is_refused(quantity, options, words):
    with pytest.raises(od.OrderError, match=words):
        od.function(linkage("four_bar"), quantity, derivatives="analytic", **options)


@pytest.mark.sample("four_bar")
@pytest.mark.parametrize("name", ["four_bar", "floating_four_bar"])
def test_derivatives_of_explicit_constraints_are_those_of_all_coordinates(name):
    f = od.function(linkage(name), "constrained_dynamics", derivatives="analytic")
    assert max(check_derivatives(f, tolerance=1e-9).values()) < 1e-9


def lifted(derivatives):
    robot = linkage("floating_four_bar")
    ocp = od.Problem(4, 0.5)
    q, v, dv, tau = ocp.rigid_body(robot, derivatives=derivatives, guess=robot.neutral())
    ocp.start({q: robot.neutral(), v: 0})
    ocp.goal({v: np.r_[0.1, 0.2, 0, 0, 0, 0.5, 0.3]})
    ocp.minimize(integral=ca.sumsqr(tau / 20) + ca.sumsqr(dv))
    return ocp.solve(method="euler")


@pytest.mark.slow
def test_optima_of_robots_with_loops_are_the_same_by_both():
    one, other = lifted("analytic"), lifted("ad")
    assert one.objective == pytest.approx(other.objective, rel=1e-9)
    assert one.iterations == other.iterations


@pytest.mark.slow
def test_normalised_quaternions():
    robot = linkage("floating_four_bar")
    q, V = state(robot, 1)
    f, strict = (od.function(robot, "bias", normalize=x) for x in (True, False))
    assert largest(f(scaled_quaternions(robot, q, 3.0), V[0]), strict(q, V[0])) < 1e-12
    with pytest.raises(od.ShapeError, match="norm 3"):
        strict(scaled_quaternions(robot, q, 3.0), V[0])


@pytest.mark.parametrize("name", ["four_bar", pytest.param("floating_four_bar", marks=pytest.mark.slow)])
def test_ad_is_finite_where_steps_are_zero(name):
    """At the configuration that loops are followed from, nothing is left to close."""
    robot = linkage(name)
    q = robot.home[robot.rows("q", robot.independent)]
    ports, lam = [q, *np.ones((2, robot.nv))], np.ones(robot.nv)
    by_ad, _ = taken(od.function(robot, "inverse_dynamics"), ports, lam)
    expected, _ = taken(od.function(robot, "inverse_dynamics", derivatives="analytic"), ports, lam)
    assert max(largest(x, y) for x, y in zip(by_ad, expected, strict=True)) < 1e-9


# -- more partials, by two methods and by differences -----------------------------------------------------------------

SECOND = {"inverse": ("inverse_dynamics", "tau", "dM_dq"), "forward": ("forward_dynamics", "dv", "dMinv_dq")}


@pytest.mark.few(5)
@pytest.mark.sample("inverse-four_bar", "forward-four_bar")
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("gough_stewart", "six_bar")])
@pytest.mark.parametrize("which", SECOND)
def test_second_partials(which, name):
    """By their methods, and by differences of the first ones along steps."""
    robot, (quantity, of, last) = linkage(name), SECOND[which]
    (q, (v, x)), h = state(robot, 1), 1e-5
    f, twin = (od.function(robot, f"{quantity}_second_partials", method=m) for m in (None, "ad"))
    found = dict(zip(f.name_out(), f(q, v, x), strict=True))
    assert max(largest(a, b) for a, b in zip(found.values(), twin(q, v, x), strict=True)) < 1e-8
    first, unit = od.function(robot, f"{quantity}_partials"), np.eye(robot.nv)

    def slope(ahead, behind, port):
        return (np.array(first(*ahead)[port]) - np.array(first(*behind)[port])).ravel(order="F") / (2 * h)

    for out, port, moves in (
        (f"d2{of}_dqdq", 0, "q"),
        (f"d2{of}_dqdv", 0, "v"),
        (f"d2{of}_dvdv", 1, "v"),
        (last, 2, "q"),
    ):
        columns = []
        for e in unit:
            ends = [(robot.integrate(q, s * e), v, x) if moves == "q" else (q, v + s * e, x) for s in (h, -h)]
            columns.append(slope(*ends, port))
        assert largest(np.stack(columns, 1), found[out]) < 1e-5, out


@pytest.mark.few(12)
@pytest.mark.sample("first-four_bar")
@pytest.mark.parametrize("name", [n for n in NAMES if n != "gough_stewart"])  # whose AD takes gigabytes
@pytest.mark.parametrize("which", ["none", "first", "all"])
def test_partials_of_hybrid_dynamics(which, name):
    robot = linkage(name)
    joints = [j.name for j in robot.joints]
    prescribed = {"none": (), "first": joints[:1], "all": joints}[which]
    f, twin = (
        od.function(robot, "hybrid_dynamics_partials", prescribed=prescribed, method=m) for m in ("from_inverse", "ad")
    )
    rng = np.random.default_rng(1)
    ports = [state(robot, 0)[0], *(rng.normal(size=f.size_in(k)) for k in range(1, 4))]
    found = [np.array(x) for x in f(*ports)]
    assert max(largest(x, y) for x, y in zip(found, twin(*ports), strict=True)) < 1e-8
    assert f.name_out() == od.function(robot.tree, "hybrid_dynamics_partials", prescribed=prescribed).name_out()
    hybrid = od.function(robot, "hybrid_dynamics", prescribed=prescribed)

    def at(e):
        values = hybrid(robot.integrate(ports[0], e), *ports[1:])
        return np.concatenate([np.array(values[k]).ravel() for k in range(2)])

    columns = [(at(1e-6 * e) - at(-1e-6 * e)) / 2e-6 for e in np.eye(robot.nv)]
    assert largest(np.stack(columns, 1), np.vstack([found[0], found[4]])) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "knee_linkage_leg", "floating_four_bar"])
def test_partials_of_hybrid_dynamics_of_order_one(name):
    robot = linkage(name)
    joints = [j.name for j in robot.joints][-1:]
    f, twin = (
        od.function(robot, "hybrid_dynamics_partials", order=1, prescribed=joints, external_wrenches=True, method=m)
        for m in ("from_inverse", "ad")
    )
    rng = np.random.default_rng(1)
    ports = [state(robot, 0)[0], *(rng.normal(size=f.size_in(k)) for k in range(1, f.n_in()))]
    assert max(largest(x, y) for x, y in zip(f(*ports), twin(*ports), strict=True)) < 1e-8


@pytest.mark.few(5)
@pytest.mark.sample("garofalo-four_bar")
@pytest.mark.parametrize("name", [n for n in NAMES if n != "gough_stewart"])  # whose AD takes gigabytes
@pytest.mark.parametrize("coriolis", ["christoffel", "garofalo", "kumar_mueller"])
def test_coefficients_make_derivatives_of_torques(coriolis, name):
    robot, order = linkage(name), 2
    q, V = state(robot, order + 1)
    P = od.function(robot, "eom_coefficients", order=order, coriolis=coriolis)(q, *V[: order + 1])
    tau = od.function(robot, "inverse_dynamics", order=order)(q, *V)[order]
    g = od.function(robot, "gravity", order=order)(q, *V[:order])[order]
    assert largest(total(p @ v for p, v in zip(P, V, strict=True)), tau - g) < 1e-10
    assert largest(P[-1], od.function(robot, "mass_matrix")(q)) < 1e-12
