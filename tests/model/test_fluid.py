"""Bodies in a fluid: added inertia and drag, against Fossen's model, Lagrange's equations and the balance of energy."""

import pickle
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest
from samples import random_ports, relative, rotation

import oc_dyn as od
from oc_dyn import registry
from oc_dyn.digest import digest
from oc_dyn.errors import ModelError, OrderError, ShapeError
from oc_dyn.model.joints import WITHOUT_AXIS
from oc_dyn.registry import get, get_method


def fluid(rng):
    A = rng.normal(size=(6, 6))
    D = rng.normal(size=(6, 6))
    return {"added_inertia": A @ A.T, "drag": D @ D.T, "quadratic_drag": rng.uniform(0.2, 2, 6)}


def build(kinds, parents=None, seed=0, wet=True, mimic=None, **options):
    """Robot of generic links in a fluid, the last of which has another one fixed to it."""
    rng = np.random.default_rng(seed)
    b = od.RobotBuilder("wet" if wet else "dry")
    b.add_link("link0", 1.0, (0.1, 0, 0), (0.2, 0, 0, 0.2, 0, 0.3), **(fluid(rng) if wet else {}))
    parents = parents or range(len(kinds))
    for k, kind in enumerate(["fixed" if x == "weld" else x for x in (*kinds, "weld")]):
        drawn = fluid(rng)
        b.add_body(
            f"link{k + 1}", kind, f"link{parents[k] if k < len(kinds) else k}", mass=rng.uniform(0.5, 2),
            com=rng.normal(size=3) / 5, inertia=(0.2, 0.01, 0.02, 0.25, 0.03, 0.3), xyz=rng.normal(size=3) / 3,
            rotation=rotation(rng), **({} if kind in (*WITHOUT_AXIS, "fixed") else {"axis": rng.normal(size=3)}),
            **(drawn if wet else {}), **({"mimic": mimic[k]} if mimic and k in mimic else {}),
            **({"armature": 0.1} if kind == "revolute" else {}),
        )  # fmt: skip
    return b.build(**options)


ROBOTS = {
    "vehicle": lambda: build(["revolute", "revolute"], [0, 0], seed=1, floating_base=True),
    "arm": lambda: build(["revolute", "prismatic", "revolute"], seed=2),
    "spherical": lambda: build(["spherical", "universal"], seed=3),
    "mimic": lambda: build(["revolute", "prismatic", "revolute"], seed=4, mimic={2: ("link1_joint", -0.5, 0.1)}),
}
QUANTITIES = [q for q in od.quantities("robot") if q.startswith("frame") is False and "distances" not in q]
COUNTED = {
    "inverse_dynamics": 2, "forward_dynamics": 2, "mass_matrix": 2, "coriolis_matrix": 1, "bias": 1, "gravity": 1,
    "dynamic_matrices": 1, "kinetic_energy": 1, "potential_energy": 1, "inverse_dynamics_partials": 1,
    "forward_dynamics_partials": 1, "inverse_dynamics_adjoint": 0, "forward_dynamics_adjoint": 0,
    "inverse_dynamics_lagrangian_hessian": 0, "forward_dynamics_lagrangian_hessian": 0, "com": 1, "com_jacobian": 1,
}  # fmt: skip
_BUILT = {}


def robot(name):
    if name not in _BUILT:
        _BUILT[name] = ROBOTS[name]()
    return _BUILT[name]


def numbers(f, x):
    return {k: np.array(y) for k, y in f(**{n: x[n] for n in f.name_in()}).items()}


def skew(x):
    """Matrix of x times."""
    return np.cross(np.eye(3), x)


def fossen(M, V):
    """C(nu) nu of Fossen 2011, eq. 3.46, for M and V with linear parts first."""
    a = M[:3, :3] @ V[:3] + M[:3, 3:] @ V[3:]
    b = M[3:, :3] @ V[:3] + M[3:, 3:] @ V[3:]
    return np.block([[np.zeros((3, 3)), -skew(a)], [-skew(a), -skew(b)]]) @ V


def test_a_rigid_body_is_fossens_vehicle():
    """M nu' + C(nu) nu + D nu + d |nu| nu + g = tau, linear parts first, all written down here."""
    rng = np.random.default_rng(7)
    given, com, m = fluid(rng), np.array([0.1, -0.2, 0.05]), 3.0
    inertia = np.diag([0.3, 0.4, 0.5])
    b = od.RobotBuilder("vehicle")
    b.add_link("hull", m, com, inertia, **given)
    r = b.build(floating_base=True)
    f = od.function(r, "inverse_dynamics")
    x = random_ports(f, r, 3)
    first = [3, 4, 5, 0, 1, 2]
    S = skew(com)
    rigid = np.block([[m * np.eye(3), -m * S], [m * S, inertia - m * S @ S]])
    added, D, d = (
        given["added_inertia"][np.ix_(first, first)],
        given["drag"][np.ix_(first, first)],
        given["quadratic_drag"],
    )
    nu, dnu = x["v"].ravel()[first], x["dv"].ravel()[first]
    R = od.function(r, "frame_pose", frame="hull")(q=x["q"])["R"].full()
    weight = R.T @ r.gravity * m
    g = -np.concatenate([weight, np.cross(com, weight)])
    tau = (rigid + added) @ dnu + fossen(rigid, nu) + fossen(added, nu) + D @ nu + d[first] * np.abs(nu) * nu + g
    assert relative(numbers(f, x)["tau"].ravel()[first], tau) < 1e-12
    assert np.allclose(fossen(rigid, nu), np.concatenate([
        m * (np.cross(nu[3:], nu[:3]) + np.cross(nu[3:], np.cross(nu[3:], com))),
        m * np.cross(com, np.cross(nu[3:], nu[:3])) + np.cross(nu[3:], (inertia - m * S @ S) @ nu[3:]),
    ]))  # fmt: skip


def test_an_arm_on_a_vehicle_obeys_lagranges_equations():
    """The vehicle on three slides and a hinge: d/dt dT/dv - dT/dq + dU/dq and the drag, T of links by their twists."""
    rng = np.random.default_rng(5)
    b = od.RobotBuilder("vehicle with an arm")
    b.add_link("ground")
    drags = {}
    slides = [(n, "prismatic", axis) for n, axis in zip("xyz", np.eye(3), strict=True)]
    hinges = [("hull", (0.6, 0, 0.8)), ("upper", (0, 1, 0)), ("lower", (1, 0, 0))]
    links = [*slides, *((n, "revolute", axis) for n, axis in hinges)]
    above, bodies = "ground", []
    for name, kind, axis in links:
        solid = name in ("hull", "upper", "lower")
        drags[name] = fluid(rng) if solid else {}
        shape = {"mass": 1.5, "com": (0.1, 0.05, -0.1), "inertia": (0.2, 0, 0, 0.3, 0, 0.4)} if solid else {}
        b.add_body(name, kind, above, axis=axis, xyz=rng.normal(size=3) / 4, **shape, **drags[name])
        bodies += [name] if solid else []
        above = name
    r = b.build()
    q, v, dv = (ca.SX.sym(n, r.nv) for n in ("q", "v", "dv"))
    T, push, U = 0, 0, od.function(r, "potential_energy")(q=q)["U"]
    for name in bodies:
        p = r.parameters.reshape(-1, 10)[[x.name for x in r.bodies].index(name)]
        h = skew(p[1:4])
        tensor = np.array([[p[4], p[5], p[7]], [p[5], p[6], p[8]], [p[7], p[8], p[9]]])
        M = np.block([[tensor, h], [h.T, p[0] * np.eye(3)]]) + drags[name]["added_inertia"]
        options = {"frame": name, "representation": "body"}
        V = od.function(r, "frame_twist", **options)(q=q, v=v)["V"]
        J = od.function(r, "frame_jacobian", **options)(q=q)["J"]
        T = T + ca.dot(V, ca.DM(M) @ V) / 2
        w = ca.DM(drags[name]["drag"]) @ V + ca.DM(drags[name]["quadratic_drag"]) * ca.fabs(V) * V
        push = push + J.T @ w
    p = ca.gradient(T, v)
    tau = ca.jtimes(p, q, v) + ca.jtimes(p, v, dv) - ca.gradient(T, q) + ca.gradient(U, q) + push
    expected = ca.Function("tau", [q, v, dv], [tau, T])
    x = rng.normal(size=(3, r.nv))
    assert relative(od.function(r, "inverse_dynamics")(*x), expected(*x)[0]) < 1e-11
    assert relative(od.function(r, "kinetic_energy")(*x[:2]), expected(*x)[1]) < 1e-12


@pytest.mark.few(16)
@pytest.mark.sample("forward_dynamics-arm")
@pytest.mark.parametrize("name", list(ROBOTS))
@pytest.mark.parametrize("quantity", list(COUNTED))
def test_methods_that_count_it_agree(quantity, name):
    """Recursions with the fluid's wrenches against block matrices whose inertias have it; with an independent twin."""
    r, top = robot(name), COUNTED[quantity]
    able = [m for m in od.methods(quantity) if get_method(quantity, m).refusal(r, 0) is None]
    found = []
    for method in able:
        order = min(x for x in (top, get(quantity).max_order, get_method(quantity, method).max_order) if x is not None)
        for k in range(order + 1):
            f = od.function(r, quantity, order=k, method=method)
            x = random_ports(f, r, 2)
            y = numbers(f, x)
            found.append((k, method, get(quantity).compare(k, x, y) if get(quantity).compare else y))
    for k, method, y in found:
        reference = next(z for n, _, z in found if n == k)
        for port, value in reference.items():
            assert relative(np.array(y[port]), np.array(value)) < 1e-9, (method, k, port)


@pytest.mark.parametrize("name", ["vehicle", pytest.param("spherical", marks=pytest.mark.slow)])
def test_forward_undoes_inverse(name):
    r = robot(name)
    f = od.function(r, "inverse_dynamics", order=2, external_wrenches=True, friction=False)
    x = random_ports(f, r, 6)
    tau = numbers(f, x)
    for method in ("closed_form", "ad_via_inverse"):
        back = numbers(od.function(r, "forward_dynamics", order=2, method=method, external_wrenches=True), {**x, **tau})
        for port, value in back.items():
            assert relative(value, x[port]) < 1e-8, (method, port)


@pytest.mark.parametrize("name", ["vehicle", pytest.param("mimic", marks=pytest.mark.slow)])
def test_power_goes_into_energy_and_drag(name):
    """v tau = d(T + U)/dt + power of the drag, which is what bias and gravity differ by along v."""
    r = robot(name)
    f = od.function(r, "inverse_dynamics")
    x = random_ports(f, r, 8)
    tau, v = numbers(f, x)["tau"].ravel(), x["v"].ravel()
    rates = [
        numbers(od.function(r, q, order=1), x)[f"d{p}"] for q, p in (("kinetic_energy", "T"), ("potential_energy", "U"))
    ]
    h, g = (numbers(od.function(r, q), x)[p].ravel() for q, p in (("bias", "h"), ("gravity", "g")))
    C = numbers(od.function(r, "coriolis_matrix", coriolis="garofalo"), x)["C"]
    dissipated = v @ (h - g - C @ v)
    assert dissipated > 0.1
    assert v @ tau == pytest.approx(float(sum(rates).item()) + dissipated)
    dM = numbers(od.function(r, "mass_matrix", order=1), x)["dM"]
    assert relative(C + C.T, dM) < 1e-11


@pytest.mark.sample("vehicle-inverse_dynamics", "arm-forward_dynamics")
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("name", list(ROBOTS))
def test_partials_are_differences(name, quantity):
    r = robot(name)
    f, J = od.function(r, quantity), od.function(r, f"{quantity}_partials")
    x = {k: np.array(y).ravel() for k, y in random_ports(f, r, 9).items()}
    y, partials = f.name_out()[0], numbers(J, x)
    for port in f.name_in():

        def at(e, port=port):
            return numbers(f, {**x, port: r.integrate(x["q"], e) if port == "q" else x[port] + e})[y].ravel()

        found = np.column_stack([(at(e) - at(-e)) / 2e-6 for e in 1e-6 * np.eye(r.nv)])
        assert relative(partials[f"d{y}_d{port}"], found) < 1e-6, port


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.parametrize("name", ["arm", "mimic", "vehicle"])
def test_registered_derivatives(name, quantity):
    """Partials, adjoint and Lagrangian Hessian against AD of the function."""
    f = od.function(robot(name), quantity, derivatives="analytic")
    assert max(od.check_derivatives(f, points=1).values()) < 1e-7


@pytest.mark.slow
def test_partials_of_derivatives_of_forward_dynamics():
    r = robot("arm")
    f, J = od.function(r, "forward_dynamics", order=1), od.function(r, "forward_dynamics_partials", order=1)
    x = random_ports(f, r, 3)
    symbols = [ca.MX.sym(n, *f.size_in(n)) for n in f.name_in()]
    D = ca.Function("D", symbols, [ca.jacobian(ca.Function.call(f, symbols)[1], s) for s in symbols])
    for port, found in zip(f.name_in(), D(*(x[n] for n in f.name_in())), strict=True):
        assert relative(numbers(J, x)[f"dd2v_d{port}"], found) < 1e-9, port


@pytest.mark.slow
def test_with_representation_parameters_and_gravity():
    r = robot("vehicle")
    options = {"representation": "hybrid", "parameters": "symbolic", "gravity": True}
    f, g = od.function(r, "inverse_dynamics", **options), od.function(r, "inverse_dynamics", representation="hybrid")
    x = random_ports(g, r, 4) | {"params": r.parameters, "gravity": r.gravity}
    assert relative(numbers(f, x)["tau"], numbers(g, x)["tau"]) < 1e-11
    M = numbers(od.function(r, "mass_matrix", representation="hybrid"), x)["M"]
    h = numbers(od.function(r, "bias", representation="hybrid"), x)["h"]
    assert relative(M @ x["dv"] + h, numbers(g, x)["tau"]) < 1e-11


def test_fixed_links_and_a_turned_tree_carry_it_along():
    """At rest against the dry robot, held joints, and seen from a frame that is fixed to the same body."""
    r = robot("arm")
    held = r.locked({"link2_joint": 0.3})
    q, v = held.random_configuration(seed=1), np.array([0.4, -0.7])
    full = {"q": np.array([q[0], 0.3, q[1]]), "v": np.array([v[0], 0, v[1]]), "dv": np.zeros(3)}
    tau = numbers(od.function(r, "inverse_dynamics"), full)["tau"]
    assert (
        relative(numbers(od.function(held, "inverse_dynamics"), {"q": q, "v": v, "dv": 0 * v})["tau"], tau[[0, 2]])
        < 1e-12
    )
    assert len(r.bodies[-1].inertia.fluid) == 2
    again = pickle.loads(pickle.dumps(r))
    assert relative(numbers(od.function(again, "inverse_dynamics"), full)["tau"], tau) < 1e-15
    assert digest(r) != digest(build(["revolute", "prismatic", "revolute"], seed=2, wet=False))


def test_a_dry_robot_is_as_before():
    r = build(["revolute", "prismatic", "revolute"], seed=2, wet=False)
    assert "fluid" not in r.features
    assert od.function(r, "hybrid_dynamics", prescribed=("link1_joint",)).n_instructions()


@pytest.mark.parametrize(
    "quantity", ["momentum", "hybrid_dynamics", "joint_torque_regressor", "slotine_li_regressor", "eom_coefficients",
                 "matrix_partials", "mass_matrix_inverse", "inverse_dynamics_second_partials"],
)  # fmt: skip
def test_quantities_that_do_not_count_it_refuse_by_name(quantity):
    options = {"prescribed": ("link1_joint",)} if "hybrid" in quantity else {}
    with pytest.raises(OrderError, match=f"{quantity}/.* does not count what a fluid does to bodies"):
        od.function(robot("arm"), quantity, **options)


def test_methods_that_do_not_count_it_refuse_by_name():
    with pytest.raises(OrderError, match="recursive_body does not count what a fluid.*methods that can: .*taylor"):
        od.function(robot("arm"), "inverse_dynamics", method="recursive_body")


@pytest.mark.sample("arm-dynamic_matrices")
@pytest.mark.parametrize("quantity", ["coriolis_matrix", "dynamic_matrices"])
@pytest.mark.parametrize("name", list(ROBOTS))
def test_the_coriolis_matrix_is_that_of_christoffel_symbols(name, quantity):
    """By default, as without a fluid: Koszul's formula on Jacobians against that on derivatives of M by AD."""
    r = robot(name)
    f, g = od.function(r, quantity, order=1), od.function(r, "coriolis_matrix", order=1, method="ad")
    x = random_ports(f, r, 3)
    found, expected = numbers(f, x), numbers(g, x)
    assert max(relative(found[k], expected[k]) for k in ("C", "dC")) < 1e-11
    M = numbers(od.function(r, "mass_matrix", order=2), x)
    assert max(relative(found[k] + found[k].T, M[m]) for k, m in (("C", "dM"), ("dC", "d2M"))) < 1e-11
    other = numbers(od.function(r, quantity, coriolis="garofalo"), x)["C"]
    assert name == "mimic" or relative(other, found["C"]) > 0.1
    h, gravity = numbers(od.function(r, "bias"), x)["h"], numbers(od.function(r, "gravity"), x)["g"]
    drag = h - found["C"] @ x["v"] - gravity
    still = numbers(od.function(r, "bias"), x | {"v": -x["v"]})["h"] - gravity - found["C"] @ x["v"]
    assert relative(still, -drag) < 1e-11  # C v is even in v, drag odd


@pytest.mark.sample(1)
@pytest.mark.parametrize("representation", ["hybrid", "spatial"])
def test_it_is_admissible_in_every_representation(representation):
    r = robot("vehicle")
    C = od.function(r, "coriolis_matrix", representation=representation)
    x = random_ports(C, r, 3)
    dM = numbers(od.function(r, "mass_matrix", order=1, representation=representation), x)["dM"]
    found = numbers(C, x)["C"]
    assert relative(found + found.T, dM) < 1e-11


def test_christoffel_symbols_entry_by_entry():
    r = robot("arm")
    q, v = ca.SX.sym("q", r.nq), ca.SX.sym("v", r.nv)
    M = od.function(r, "mass_matrix")(q=q)["M"]
    dM = [ca.jacobian(M, q[k]).reshape(M.shape) for k in range(r.nv)]
    rows = range(r.nv)
    symbols = [[sum(0.5 * (dM[k][i, j] + dM[j][i, k] - dM[i][j, k]) * v[k] for k in rows) for j in rows] for i in rows]
    expected = ca.Function("C", [q, v], [ca.vertcat(*(ca.horzcat(*row) for row in symbols))])
    x = np.random.default_rng(2).normal(size=(2, r.nv))
    assert relative(od.function(r, "coriolis_matrix")(*x), expected(*x)) < 1e-11


def test_no_other_coriolis_matrix_comes_without_a_word(monkeypatch):
    """Where no method that gives the default one counts a fluid, it is refused; others come by name."""
    table = registry._METHODS["coriolis_matrix"]
    for name, m in list(table.items()):
        if "christoffel" in m.coriolis:
            monkeypatch.setitem(table, name, replace(m, fluid=False))
    with pytest.raises(OrderError, match="closed_form gives the Coriolis matrix kumar_mueller, not christoffel"):
        registry.choose("coriolis_matrix", robot("arm"), 0)
    assert registry.choose("coriolis_matrix", robot("arm"), 0, coriolis="garofalo").name == "jacobian_sum"
    assert registry.choose("coriolis_matrix", robot("arm"), 0, "closed_form").name == "closed_form"


def path_of(**given):
    """A plan along a path of a wet pendulum whose torque is limited."""
    b = od.RobotBuilder("pendulum")
    b.add_link("base")
    limits = {"velocity": 5.0, "effort": 9.0}
    b.add_body("arm", "revolute", "base", axis=(0, 1, 0), mass=1.0, com=(0.3, 0, 0.4), **given, **limits)
    r = b.build()
    limits = replace(od.Limits.of(r), dv=np.array([[-100.0], [100.0]]))
    return od.plan_along_path(r, [[0.0], [1.0], [2.0]], limits=limits, nodes=20, check="raise")


@pytest.mark.slow
def test_paths_count_what_is_quadratic_in_the_speed():
    """Torques along a path are a s'' + b s'^2 + g: added inertia and quadratic drag are of that form."""
    motion = path_of(added_inertia=np.full(6, 0.5), quadratic_drag=np.full(6, 0.4))
    assert 0.99 < motion.check().worst < 1.001


def test_paths_refuse_linear_drag():
    with pytest.raises(ModelError, match="plan_along_path.* does not count the linear drag of arm"):
        path_of(drag=np.full(6, 0.4))


def test_other_robots_refuse_it():
    with pytest.raises(ModelError, match="an elastic robot does not count what a fluid does to link1, link2, link3"):
        od.elastic.elastic_robot(robot("arm"), 100.0, motor_inertia=0.1)
    b = od.RobotBuilder("loop")
    b.add_link("ground")
    b.add_body("a", "revolute", "ground", mass=1.0, drag=np.ones(6), joint="one")
    b.add_body("b", "revolute", "a", mass=1.0, xyz=(1, 0, 0), joint="two")
    b.add_body("c", "revolute", "b", mass=1.0, xyz=(0, 1, 0), joint="three")
    b.close_loop("closing", "c", "ground", xyz_a=(-1, 0, 0), xyz_b=(0, 1, 0))
    with pytest.raises(ModelError, match="a robot with loops does not count what a fluid does to a"):
        b.build()


WRONG = {
    "shape": ({"added_inertia": np.eye(3)}, ShapeError, r"added_inertia: got shape \(3, 3\), expected \(6, 6\)"),
    "quadratic": ({"quadratic_drag": np.eye(6)}, ShapeError, r"quadratic_drag: got shape \(6, 6\), expected \(6,\)"),
    "half": ({"added_inertia": np.triu(np.ones((6, 6)))}, ShapeError, "added_inertia is not symmetric"),
    "negative": ({"added_inertia": -np.eye(6)}, ModelError, "added_inertia has the negative eigenvalue -1"),
    "giving": ({"drag": [0, 0, 0, -2, 0, 0]}, ModelError, "drag has the negative eigenvalue -2"),
    "nan": ({"drag": [np.nan] * 6}, ShapeError, "drag: got .*nan.*finite"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_refused(case):
    given, error, text = WRONG[case]
    with pytest.raises(error, match=text):
        od.RobotBuilder("r").add_link("hull", 1.0, **given)
