"""Registered derivatives are those that CasADi uses, wherever it differentiates a Function."""

import pickle

import casadi as ca
import numpy as np
import pytest
from samples import relative, robot, scaled_quaternions, scene

import oc_dyn as od
from oc_dyn.derivatives import with_derivatives
from oc_dyn.model import joints as jt
from oc_dyn.model.coordinate_steps import step_curvature, step_map

ROBOTS = ("serial", "branching", "prismatic", "mimic", "spherical", "planar", "floating", "free")
ON_GROUPS = ROBOTS[4:]  # whose velocities are not the rates of q
N = 3


@pytest.mark.few(24)
@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize(
    "quantity, order, options",
    [
        ("inverse_dynamics", 0, {}),
        ("inverse_dynamics", 0, {"friction": True, "external_wrenches": True}),
        ("inverse_dynamics", 1, {"friction": True}),
        ("inverse_dynamics", 2, {}),
        ("forward_dynamics", 0, {"friction": True}),
        ("forward_dynamics", 1, {}),
    ],
)
def test_derivatives_equal_ad(quantity, order, options, name):
    f = od.function(robot(name), quantity, order=order, derivatives="analytic", **options)
    assert f.twin is not None
    assert max(od.check_derivatives(f, tolerance=1e-9).values()) < 1e-9


@pytest.mark.parametrize("name", [pytest.param(x, marks=pytest.mark.slow) for x in ON_GROUPS])
def test_distances_on_groups_equal_ad(name):
    f = od.function(robot(name), "distances", scene=scene(), derivatives="analytic")
    assert max(od.check_derivatives(f, tolerance=1e-9).values()) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("name", ["quadruped", "humanoid", "aerial_manipulator"])
def test_derivatives_of_robots_on_a_free_base_equal_ad(name, quantity):
    f = od.function(getattr(od.robots, name)(), quantity, derivatives="analytic")
    assert max(od.check_derivatives(f, tolerance=1e-9).values()) < 1e-9


def derivatives_at(f, q, others, lam):
    """(Jacobian, Hessian of lam' f) by q that CasADi takes of a Function of one output."""
    x = ca.MX.sym("q", q.size)
    y = ca.Function(f)(x, *others)
    H, _ = ca.hessian(ca.dot(ca.DM(lam), y), x)
    return [np.array(z) for z in ca.Function("of_q", [x], [ca.jacobian(y, x), H])(q)]


@pytest.mark.sample(1)
@pytest.mark.parametrize("length", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("name", ["floating", "spherical"])
def test_along_a_quaternion(name, length):
    """Values do not change along a quaternion Q, so J Q = 0 and, differentiated once more, H Q = -gradient."""
    r = robot(name)
    f = od.function(r, "inverse_dynamics", derivatives="analytic")
    rng = np.random.default_rng(1)
    lam, q = rng.normal(size=r.nv), scaled_quaternions(r, r.random_configuration(1), length)
    J, H = derivatives_at(f, q, [rng.normal(size=r.nv) for _ in range(2)], lam)
    for j in r.joints:
        if j.kind in jt.QUATERNIONS:
            rows = slice(j.q_index, j.q_index + 4)
            assert np.abs(J[:, rows] @ q[rows]).max() < 1e-11 * np.abs(J).max()
            mixed = H[:, rows] @ q[rows]
            mixed[rows] += J[:, rows].T @ lam
            assert np.abs(mixed).max() < 1e-11 * np.abs(H).max()


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ON_GROUPS)
def test_steps_of_coordinates_are_derivatives_of_differences(name):
    """Against central differences of difference(q, q + d) by d."""
    r = robot(name)
    rng = np.random.default_rng(2)
    q = scaled_quaternions(r, r.random_configuration(2), 0.7)
    g, x = rng.normal(size=r.nv), ca.SX.sym("q", r.nq)
    L, C = ca.Function("steps", [x], [ca.densify(step_map(r, x)), ca.densify(step_curvature(r, x, ca.DM(g)))])(q)
    difference = r.difference_function().normalizing()
    h, unit = 1e-4, np.eye(r.nq)

    def step(d):
        return np.array(difference(q, q + d)).ravel()

    by_one = np.column_stack([(step(h * e) - step(-h * e)) / (2 * h) for e in unit])
    assert relative(L, by_one) < 1e-7
    by_two = [
        [g @ (step(h * (a + b)) - step(h * (a - b)) - step(h * (b - a)) + step(-h * (a + b))) for b in unit]
        for a in unit
    ]
    assert relative(C, np.array(by_two) / (4 * h * h)) < 1e-6


def test_differences_are_the_reference_of_other_functions():
    x = ca.MX.sym("x", 3)
    good = ca.Function("good", [x], [ca.sin(x) * ca.sumsqr(x)])
    assert od.check_derivatives(good, tolerance=1e-5)["hessian"] < 1e-5


# -- which derivative is used: they are wrong on purpose here, each by a factor of its own ------------------------

JACOBIAN, GRADIENT, HESSIAN = 10.0, 100.0, 1000.0


@pytest.fixture(scope="module")
def marked():
    """f(x) = (sum of squares) * (A x)^2 with wrong derivatives, and what they would be if right."""
    x = ca.SX.sym("x", 4)
    A = ca.DM(np.random.default_rng(0).normal(size=(2, 4)))
    y = (A @ x) ** 2 * ca.sumsqr(x)
    J = ca.jacobian(y, x)

    def adjoint(seeds):
        return [GRADIENT * (J.T @ seeds[0])]

    def hessian(seeds):
        return {(0, 0): HESSIAN * ca.hessian(ca.dot(seeds[0], y), x)[0]}

    f = with_derivatives("f", [x], [y], {(0, 0): JACOBIAN * J}, adjoint, hessian, ["x"], ["y"])
    lam = ca.SX.sym("lam", 2)
    right = ca.Function("right", [x, lam], [J, J.T @ lam, ca.hessian(ca.dot(lam, y), x)[0]])
    return f, right


X, LAM = np.array([0.3, -0.7, 0.2, 0.9]), np.array([1.3, -0.4])


def factor(got, right):
    got, right = np.array(ca.DM(got)), np.array(ca.DM(right))
    used = np.abs(right) > 1e-6
    return np.median(got[used] / right[used])


def test_mx_graphs(marked):
    f, right = marked
    J, g, H = right(X, LAM)
    x = ca.MX.sym("x", 4)
    y = f(x)
    assert factor(ca.Function("J", [x], [ca.jacobian(y, x)])(X), J) == pytest.approx(JACOBIAN)
    lagrangian = ca.dot(ca.DM(LAM), y)
    assert factor(ca.Function("g", [x], [ca.gradient(lagrangian, x)])(X), g) == pytest.approx(GRADIENT)
    assert factor(ca.Function("H", [x], [ca.hessian(lagrangian, x)[0]])(X), H) == pytest.approx(HESSIAN)


@pytest.mark.parametrize("kind", ["serial", "unroll", "thread"])
def test_maps(marked, kind):
    f, right = marked
    J, _, H = right(X, LAM)
    z = ca.MX.sym("z", 4 * N)
    mapped = f.map(N, "thread", 2) if kind == "thread" else f.map(N, kind)
    y, at = mapped(ca.reshape(z, 4, N)), np.tile(X, N)
    made = ca.Function("J", [z], [ca.jacobian(ca.vec(y), z)])(at)
    # through products with the Jacobian, or adjoints of several seeds, which are such products
    assert factor(made[:2, :4], J) == pytest.approx(JACOBIAN)
    lagrangian = sum(ca.dot(ca.DM(LAM), y[:, k]) for k in range(N))
    made = ca.Function("H", [z], [ca.hessian(lagrangian, z)[0]])(at)
    assert factor(made[:4, :4], H) == pytest.approx(HESSIAN)


@pytest.mark.parametrize("solver", ["ipopt", "fatrop", "sqpmethod"])
def test_solvers(marked, solver):
    f, right = marked
    J, _, H = right(X, LAM)
    x = ca.MX.sym("x", 4)
    options = {"print_time": False}
    if solver == "sqpmethod":
        options |= {"qpsol": "qrqp", "print_header": False, "print_status": False, "print_iteration": False}
    s = ca.nlpsol("s", solver, {"x": x, "f": x[0], "g": f(x)}, options)
    names = s.get_function()
    jacobian = s.get_function("nlp_jac_fg" if "nlp_jac_fg" in names else "nlp_jac_g")
    assert factor(jacobian(X, [])[-1], J) == pytest.approx(JACOBIAN)
    out = s.get_function("nlp_hess_l")(X, [], 0.0, LAM)
    out = out[-1] if isinstance(out, tuple) else out
    assert factor(ca.triu(out), ca.triu(H)) == pytest.approx(HESSIAN)


def test_opti(marked):
    f, right = marked
    opti = ca.Opti()
    x = opti.variable(4)
    opti.minimize(x[0])
    opti.subject_to(f(x) == 1)
    assert factor(ca.Function("J", [opti.x], [ca.jacobian(opti.g, opti.x)])(X), right(X, LAM)[0]) == pytest.approx(
        JACOBIAN
    )


@pytest.mark.parametrize("plugin", ["rk", "cvodes", "collocation"])
def test_integrators(marked, plugin):
    """The sensitivity of a step of length h is about 1 + h J."""
    f, right = marked
    x, h = ca.MX.sym("x", 4), 1e-6
    rate = ca.vertcat(f(x), ca.MX.zeros(2))
    step = ca.integrator("step", plugin, {"x": x, "ode": rate}, 0, h)
    x0 = ca.MX.sym("x0", 4)
    S = ca.Function("S", [x0], [ca.jacobian(step(x0=x0)["xf"], x0)])(X)
    assert factor((S - ca.DM.eye(4))[:2, :] / h, right(X, LAM)[0]) == pytest.approx(JACOBIAN, rel=1e-3)


def test_generated_code(marked, tmp_path):
    f, right = marked
    x, lam = ca.MX.sym("x", 4), ca.MX.sym("lam", 2)
    H = ca.Function("of_marked", [x, lam], [ca.jacobian(f(x), x), ca.hessian(ca.dot(lam, f(x)), x)[0]])
    try:
        fast = od.compile(H, flags=("-O0",), cache=tmp_path)
    except od.SolveError:
        pytest.skip("no C compiler")
    got, expected = fast(X, LAM), right(X, LAM)
    assert factor(got[0], expected[0]) == pytest.approx(JACOBIAN)
    assert factor(got[1], expected[2]) == pytest.approx(HESSIAN)


def test_what_is_lost_by_saving(marked, tmp_path):
    """The Jacobian stays, gradients and Hessians are AD of the body again: as the docstring of od.function says."""
    f, right = marked
    f.save(str(tmp_path / "f.casadi"))
    x = ca.MX.sym("x", 4)
    for loaded in (ca.Function.load(str(tmp_path / "f.casadi")), pickle.loads(pickle.dumps(f))):
        J = ca.Function("J", [x], [ca.jacobian(loaded(x), x)])(X)
        g = ca.Function("g", [x], [ca.gradient(ca.dot(ca.DM(LAM), loaded(x)), x)])(X)
        assert factor(J, right(X, LAM)[0]) == pytest.approx(JACOBIAN)
        assert factor(g, right(X, LAM)[1]) == pytest.approx(1.0)


def test_wrong_derivatives_are_found(marked):
    f, _ = marked
    with pytest.raises(od.OrderError, match="f: the (gradient|hessian|jacobian) differs"):
        od.check_derivatives(f)


@pytest.mark.parametrize(
    "name, quantity, options, error, words",
    [
        ("serial", "mass_matrix", {}, od.OrderError, "no registered derivatives"),
        ("serial", "hybrid_dynamics", {}, od.OrderError, "repeat others"),
        ("transform", "distances", {"scene": scene()}, od.OrderError, "transform"),
        ("serial", "inverse_dynamics", {"parameters": "symbolic"}, od.OrderError, "parameters"),
    ],
)
def test_what_cannot_be_had_is_refused(name, quantity, options, error, words):
    with pytest.raises(error, match=words):
        od.function(robot(name), quantity, derivatives="analytic", **options)


def test_unknown_kinds_are_refused():
    with pytest.raises(od.UnknownName, match="magic"):
        od.function(robot("serial"), "inverse_dynamics", derivatives="magic")


@pytest.mark.parametrize("tolerance", [np.nan, np.inf, [1, 2], "a", None])
def test_the_tolerance_of_a_check_is_a_number(tolerance):
    x = ca.SX.sym("x")
    with pytest.raises(od.ShapeError, match="check_derivatives: tolerance"):
        od.check_derivatives(ca.Function("f", [x], [x**2]), tolerance=tolerance)


def test_derivatives_that_are_not_finite_do_not_pass():
    x = ca.SX.sym("x")
    with pytest.raises(od.OrderError, match="not finite at a random point"):
        od.check_derivatives(ca.Function("f", [x], [ca.sqrt(x - 2)]))
