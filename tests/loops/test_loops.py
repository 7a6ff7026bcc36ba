"""Robots with loops: closed coordinates, embedding against explicit constraints, identities, refusals."""

import pickle
from math import comb

import casadi as ca
import numpy as np
import pytest
from loops.linkages import NAMES, SMALL, all_of, geared, largest, linkage, state, three_rods

import oc_dyn as od
from oc_dyn.errors import ModelError, ShapeError, UnknownName


@pytest.mark.sample("four_bar", "six_bar", "geared")
@pytest.mark.parametrize("name", NAMES)
def test_loops_are_closed_at_all_coordinates(name):
    robot = linkage(name)
    q, _ = state(robot, 0)
    found = od.function(robot, "loop_closure")(q)
    assert np.abs(np.array(found[-1])).max() < 1e-12


@pytest.mark.sample("four_bar", "geared")
@pytest.mark.parametrize("name", NAMES)
def test_motions_of_all_joints_by_recursion_and_by_ad(name):
    robot = linkage(name)
    order = 5 if name in SMALL else 2
    q, V = state(robot, order)
    found = od.function(robot, "loop_closure", order=order)(q, *V[:order])
    twin = od.function(robot, "loop_closure", order=order, method="ad")(q, *V[:order])
    assert max(largest(x, y) for x, y in zip(found, twin, strict=True)) < 1e-10


def test_a_four_bar_is_where_circles_meet():
    robot = linkage("four_bar")
    q = np.array([0.4])
    a, b, c = np.array(od.function(robot, "loop_closure")(q)[0]).ravel()
    elbow = 0.3 * np.array([np.cos(a), np.sin(a)])  # x and -z: turns about y
    end = elbow + 0.8 * np.array([np.cos(a + b), np.sin(a + b)])
    rocker = np.array([0.7, 0]) + 0.6 * np.array([np.cos(c), np.sin(c)])
    assert np.abs(end - rocker).max() < 1e-12


def test_a_slider_crank_moves_as_its_formula_says():
    robot = linkage("slider_crank")
    for q in (-0.8, 0.3, 2.0):
        x = np.array(od.function(robot, "loop_closure")(q)[0]).ravel()[2]
        assert abs(x - (0.2 * np.cos(q) + np.sqrt(0.36 - (0.2 * np.sin(q)) ** 2))) < 1e-12


@pytest.mark.sample("four_bar", "geared")
@pytest.mark.parametrize("name", NAMES)
def test_forward_dynamics_embedded_and_by_multipliers(name):
    robot, order = linkage(name), 2
    q, V = state(robot, 0)
    x, v, _ = all_of(robot, q, V)
    rng = np.random.default_rng(1)
    T = [rng.normal(size=robot.tree.nv) for _ in range(order + 1)]
    found = od.function(robot, "constrained_dynamics", order=order)(x, v[0], *T)
    rows = robot.rows("v", robot.independent)
    accelerations = [np.array(a).ravel()[rows] for a in found[: order + 1]]
    _, _, G = all_of(robot, q, [V[0], *accelerations[:-1]])
    own = [sum(comb(k, j) * G[j].T @ T[k - j] for j in range(k + 1)) for k in range(order + 1)]
    embedded = od.function(robot, "forward_dynamics", order=order)(q, V[0], *own)
    assert max(largest(np.array(a).ravel(), b) for a, b in zip(embedded, accelerations, strict=True)) < 1e-9


@pytest.mark.sample("four_bar", "geared")
@pytest.mark.parametrize("name", NAMES)
def test_forward_dynamics_undoes_inverse_dynamics(name):
    robot = linkage(name)
    order = 5 if name in SMALL else 2
    q, V = state(robot, order + 1)
    tau = od.function(robot, "inverse_dynamics", order=order)(q, *V)
    found = od.function(robot, "forward_dynamics", order=order)(q, V[0], *tau)
    assert max(largest(np.array(x).ravel(), y) for x, y in zip(found, V[1:], strict=True)) < 1e-8


@pytest.mark.sample("four_bar", "geared")
@pytest.mark.parametrize("name", NAMES)
def test_power_is_the_rate_of_the_energies(name):
    robot = linkage(name)
    q, V = state(robot, 1)
    tau = np.array(od.function(robot, "inverse_dynamics")(q, *V)).ravel()
    rate = (
        od.function(robot, "kinetic_energy", order=1)(q, *V)[1]
        + od.function(robot, "potential_energy", order=1)(q, V[0])[1]
    )
    assert abs(tau @ V[0] - float(rate)) < 1e-9 * max(1.0, abs(float(rate)))


@pytest.mark.sample("four_bar", "geared")
@pytest.mark.parametrize("name", NAMES)
def test_matrices_make_the_torques(name):
    robot = linkage(name)
    q, V = state(robot, 1)
    M, C, g = (np.array(x) for x in od.function(robot, "dynamic_matrices")(q, V[0]))
    tau = np.array(od.function(robot, "inverse_dynamics")(q, *V))
    assert largest(M @ V[1] + C @ V[0] + g.ravel(), tau.ravel()) < 1e-10
    h = np.array(od.function(robot, "bias")(q, V[0])).ravel()
    assert largest(C @ V[0] + g.ravel(), h) < 1e-10
    rate = np.array(od.function(robot, "mass_matrix", order=1)(q, V[0])[1])
    assert largest(C + C.T, rate) < 1e-10
    Y = np.array(od.function(robot, "joint_torque_regressor")(q, *V))
    rotors = np.array([j.armature for j in robot.tree.joints for _ in range(j.nv)])  # no columns of Y
    _, v, G = all_of(robot, q, V)
    assert largest(Y @ robot.parameters + G[0].T @ (rotors * v[1]), tau.ravel()) < 1e-10


@pytest.mark.sample("four_bar")
@pytest.mark.parametrize("name", NAMES)
def test_torques_of_a_reference_motion_have_the_admissible_matrix(name):
    robot = linkage(name)
    q, V = state(robot, 1)
    vr, dvr, d2vr = np.random.default_rng(5).normal(size=(3, robot.nv))
    M, C, g = (np.array(x) for x in od.function(robot, "dynamic_matrices")(q, V[0]))
    tau = np.array(od.function(robot, "slotine_li_torque")(q, V[0], vr, dvr)).ravel()
    assert largest(tau, M @ dvr + C @ vr + g.ravel()) < 1e-10
    of_matrices = od.function(robot, "dynamic_matrices", order=1)(q, *V)
    M, dM, C, dC, _, dg = (np.array(x) for x in of_matrices)
    rate = np.array(od.function(robot, "slotine_li_torque", order=1)(q, *V, vr, dvr, d2vr)[1]).ravel()
    assert largest(rate, M @ d2vr + (dM + C) @ dvr + dC @ vr + dg.ravel()) < 1e-9


@pytest.mark.sample("floating_four_bar")
@pytest.mark.parametrize("name", NAMES)
def test_centroidal_momentum_is_that_of_the_tree(name):
    robot = linkage(name)
    q, V = state(robot, 1)
    x, v, _ = all_of(robot, q, V)
    of_tree = od.function(robot.tree, "centroidal_momentum_matrix", order=1)(x, v[0])
    A, dA = od.function(robot, "centroidal_momentum_matrix", order=1)(q, V[0])
    assert largest(A @ V[0], of_tree[0] @ v[0]) < 1e-10
    assert largest(A @ V[1] + dA @ V[0], of_tree[0] @ v[1] + of_tree[1] @ v[0]) < 1e-9


PARTIALS = [
    f"{dynamics}_dynamics_{what}"
    for dynamics in ("inverse", "forward")
    for what in ("partials", "adjoint", "lagrangian_hessian")
]


@pytest.mark.few(20)
@pytest.mark.sample(*(f"{quantity}-four_bar" for quantity in PARTIALS))
@pytest.mark.parametrize("name", [n for n in NAMES if n != "gough_stewart"])
@pytest.mark.parametrize("quantity", PARTIALS)
def test_partials_by_chain_rule_and_by_ad(quantity, name):
    robot = linkage(name)
    q, V = state(robot, 2)
    lam = [V[2]] if "partials" not in quantity else []
    found, twin = (od.function(robot, quantity, method=m).call([q, V[0], V[1], *lam]) for m in ("chain", "ad"))
    assert max(largest(x, y) for x, y in zip(found, twin, strict=True)) < 1e-9


@pytest.mark.sample("forward_dynamics_partials")
@pytest.mark.parametrize("quantity", [x for x in PARTIALS if x.startswith("forward")])
def test_partials_of_forward_dynamics_at_order_two(quantity):
    robot, order = linkage("four_bar"), 2
    q, V = state(robot, 8)
    V = V[: 5 if quantity.endswith("partials") else 8 - 1]
    ways = (od.function(robot, quantity, order=order, method=m) for m in ("chain", "ad"))
    found, twin = (f.call([q, *V[: f.n_in() - 1]]) for f in ways)
    assert len(found) == (3 + 4 + 5 if quantity.endswith("partials") else 5 if quantity.endswith("adjoint") else 1)
    assert max(largest(x, y) for x, y in zip(found, twin, strict=True)) < 1e-9


@pytest.mark.sample("four_bar", "floating_four_bar")
@pytest.mark.parametrize("name", NAMES)
def test_partials_are_those_of_differences(name):
    robot, step = linkage(name), 1e-6
    q, V = state(robot, 1)
    f = od.function(robot, "inverse_dynamics")

    def at(e):
        return np.array(f(robot.integrate(q, e), *V)).ravel()

    columns = [(at(step * e) - at(-step * e)) / (2 * step) for e in np.eye(robot.nv)]
    J = np.array(od.function(robot, "inverse_dynamics_partials")(q, *V)[0])
    assert largest(np.stack(columns, 1), J) < 1e-6


def test_casadi_differentiates_through_the_closing():
    robot = linkage("four_bar")
    q, V = state(robot, 1)
    x = ca.MX.sym("q", robot.nq)
    tau = od.function(robot, "inverse_dynamics")(x, *V)
    H, slope = ca.hessian(tau, x)
    found = ca.Function("f", [x], [slope, H])(q)
    slope, H = (float(y) for y in found)
    assert abs(slope - float(od.function(robot, "inverse_dynamics_partials")(q, *V)[0])) < 1e-9
    whole = np.array(od.function(robot, "inverse_dynamics_lagrangian_hessian")(q, *V, 1.0))
    assert abs(H - whole[0, 0]) < 1e-8


@pytest.mark.slow
def test_a_loop_that_cannot_be_closed_is_refused_by_name():
    b = od.RobotBuilder("wide")
    b.add_link("base")
    rod = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": np.diag([1e-3] * 3)}
    b.add_body("a", "revolute", "base", axis=(0, 1, 0), **rod)
    b.add_body("b", "revolute", "base", xyz=(5, 0, 0), axis=(0, 1, 0), **rod)
    b.close_loop("pin", "a", "b", xyz_a=(0.3, 0, 0), xyz_b=(0.3, 0, 0), axis=(0, 1, 0))
    with pytest.raises(ModelError, match="'pin' by"):
        b.build()


def test_numbers_out_of_reach_are_refused_by_the_loop():
    b = three_rods("rocker", second=0.6)
    b.close_loop("pin", "b", "c", xyz_a=(0.4, 0, 0), xyz_b=(0.3, 0, 0), axis=(0, 1, 0), independent=("a_joint",))
    robot = b.build(start={"a_joint": -0.5, "b_joint": 1.0, "c_joint": -1.5})
    with pytest.raises(ModelError, match="loops pin cannot be closed there"):
        od.function(robot, "gravity")(3.0)
    with pytest.raises(ModelError, match="'pin' cannot be closed there"):
        robot.close([3.0, *robot.home[1:]])


def test_a_guess_in_another_mode_is_followed_and_named():
    robot = linkage("four_bar")
    other = robot.close([robot.home[0], -robot.home[1] - 2 * robot.home[0] + 0.5, 2.5])
    assert robot.mode(other) == {"joint": "-"} != robot.mode(robot.home)
    found = od.function(robot, "loop_closure", q_guess=True)(other[:1] + 0.2, other)
    assert robot.mode(np.array(found[0]).ravel()) == {"joint": "-"}


@pytest.mark.slow
def test_motions_are_closed_continuously():
    robot = linkage("four_bar")
    q = np.tile(robot.home[:, None], 400)
    q[0] += np.linspace(0, 2 * np.pi, 400)
    found = robot.close(q)
    assert np.abs(np.diff(found, axis=1)).max() < 0.1
    assert np.abs(found[1:, -1] - found[1:, 0] - [-2 * np.pi, 0]).max() < 1e-9  # the coupler does not turn round


def test_independent_joints_are_chosen_where_none_are_asked_for():
    b = three_rods("chosen")
    b.close_loop("pin", "b", "c", "position", xyz_a=(0.8, 0, 0), xyz_b=(0.6, 0, 0))
    robot = b.build(start={"a_joint": -1.0, "b_joint": 0.5, "c_joint": -1.2})
    assert len(robot.independent) == robot.nv == 1


def test_too_many_independent_joints_are_refused():
    b = three_rods("many")
    ends = {"xyz_a": (0.8, 0, 0), "xyz_b": (0.6, 0, 0), "axis": (0, 1, 0)}
    b.close_loop("pin", "b", "c", **ends, independent=("a_joint", "b_joint"))
    with pytest.raises(ModelError, match="2 velocities are independent, expected 1"):
        b.build(start={"a_joint": -1.0, "b_joint": 0.5, "c_joint": -1.2})


def test_bad_loops_are_refused():
    b = od.RobotBuilder("bad")
    b.add_link("base")
    b.add_body("a", "revolute", "base", mass=1.0)
    with pytest.raises(UnknownName, match="kind"):
        b.close_loop("x", "a", "base", "hinge")
    with pytest.raises(ModelError, match="expected names of joints"):
        b.close_loop("x", "a", "base", independent="a_joint")
    with pytest.raises(ShapeError, match="xyz_a"):
        b.close_loop("x", "a", "base", xyz_a=(1, 2))
    b.close_loop("x", "a", "a")
    with pytest.raises(ModelError, match="are one body"):
        b.build()


def test_couplings_in_a_circle_are_refused():
    b = od.RobotBuilder("circle")
    b.add_link("base")
    b.add_body("a", "revolute", "base", mass=1.0, com=(0.1, 0, 0))
    b.add_body("b", "revolute", "a", mass=1.0, com=(0.1, 0, 0))
    b.couple("a_joint", "b_joint", lambda x: x)
    b.couple("b_joint", "a_joint", lambda x: 2 * x)
    with pytest.raises(ModelError, match="circle"):
        b.build()


def test_a_linear_coupling_is_a_mimic_joint():
    def arm(coupled):
        b = od.RobotBuilder("arm")
        b.add_link("base")
        rod = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": np.diag([1e-3, 2e-3, 2e-3])}
        b.add_body("a", "revolute", "base", axis=(0, 1, 0), **rod)
        rule = {} if coupled else {"mimic": ("a_joint", -1.5, 0.2)}
        b.add_body("b", "revolute", "a", xyz=(0.3, 0, 0), axis=(0, 1, 0), **rod, **rule)
        if coupled:
            b.couple("b_joint", "a_joint", lambda x: -1.5 * x + 0.2)
        return b.build()

    V = [np.array([x]) for x in (0.3, -0.7, 1.1, 0.4)]
    found, expected = (od.function(arm(x), "inverse_dynamics", order=1)(*V) for x in (True, False))
    assert max(largest(x, y) for x, y in zip(found, expected, strict=True)) < 1e-12


def test_functions_survive_pickling_with_their_check():
    f = pickle.loads(pickle.dumps(od.function(geared(), "gravity")))
    assert largest(f([0.1, 0.2]), od.function(geared(), "gravity")([0.1, 0.2])) < 1e-14


@pytest.mark.slow
def test_what_is_not_there_for_loops_is_refused_with_what_is():
    robot = linkage("four_bar")
    with pytest.raises(od.OrderError, match="take that of"):
        od.function(robot, "centroidal_momentum_matrix_partials")
    with pytest.raises(ModelError, match="is the tree cut open"):
        od.Scene.of(robot).attach("x", "tip", od.shapes.Sphere(0.1))


LEGS = tuple(f"leg{k}" for k in range(1, 7))


@pytest.mark.slow
@pytest.mark.parametrize("order", [0, 2])
def test_motors_of_a_platform_carry_it(order):
    robot = linkage("gough_stewart")
    q, V = state(robot, order + 1)
    tau = od.function(robot, "inverse_dynamics", order=order, actuated=LEGS)(q, *V)
    tau = tau if order else (tau,)
    found = od.function(robot, "forward_dynamics", order=order, actuated=LEGS)(q, V[0], *tau)
    found = found if order else (found,)
    assert max(largest(np.array(x).ravel(), y) for x, y in zip(found, V[1:], strict=True)) < 1e-8
    x, v, G = all_of(robot, q, V[:1])
    whole = od.function(robot, "inverse_dynamics")(q, *V[:2])
    assert largest(G[0][robot.rows("v", LEGS)].T @ np.array(tau[0]), whole) < 1e-10


def test_redundant_motors_share_the_torque_by_their_weights():
    robot = linkage("four_bar")
    q, V = state(robot, 1)
    f = od.function(robot, "inverse_dynamics", actuated=("crank", "rocker"), weighted=True)
    tau = np.array(f(q, *V, [1.0, 4.0])).ravel()
    G = all_of(robot, q, V[:1])[2][0][robot.rows("v", ("crank", "rocker"))].ravel()
    whole = float(od.function(robot, "inverse_dynamics")(q, *V))
    W = np.array([1.0, 0.25])
    assert largest(tau, W * G * whole / (G @ (W * G))) < 1e-12


def test_motors_that_do_not_move_it_are_refused():
    robot = linkage("gough_stewart")
    with pytest.raises(ModelError, match="5 of its 6 independent velocities"):
        od.function(robot, "inverse_dynamics", actuated=LEGS[:5])
    with pytest.raises(ShapeError, match="actuated is an option of"):
        od.function(robot, "mass_matrix", actuated=LEGS)


def test_quantities_follow_a_guess_into_another_mode():
    robot = linkage("four_bar")
    other = robot.close([robot.home[0], -robot.home[1] - 2 * robot.home[0] + 0.5, 2.5])
    g = od.function(robot, "gravity", q_guess=True)(other[:1] + 0.2, other)
    x = robot.close([other[0] + 0.2, *other[1:]])
    up, down = (
        float(od.function(robot.tree, "potential_energy")(robot.close([x[0] + e, *x[1:]]))) for e in (1e-6, -1e-6)
    )
    assert abs(float(g) - (up - down) / 2e-6) < 1e-6


@pytest.mark.parametrize("parts", [("inertia",), ("armature",), ("inertia", "armature")])
def test_parameters_that_are_symbols_count_once(parts):
    robot = linkage("four_bar")
    q, V = state(robot, 1)
    P = robot.parameter_values(parts) * 1.5 + 0.1
    tau = od.function(robot, "inverse_dynamics", parameters=parts)(q, *V, P)
    dv = od.function(robot, "forward_dynamics", parameters=parts)(q, V[0], tau, P)
    assert largest(np.array(dv).ravel(), V[1]) < 1e-9
    one = od.function(robot, "mass_matrix", parameters=parts)
    assert one.size1_in("params") == len(robot.parameter_rows(parts))


def test_moments_of_hinges_are_about_the_axes_that_they_say():
    b = od.RobotBuilder("held")
    b.add_link("base")
    b.add_body("x", "prismatic", "base", axis=(1, 0, 0))
    b.add_body("y", "prismatic", "x", axis=(0, 1, 0))
    b.add_body("z", "prismatic", "y", axis=(0, 0, 1))
    b.add_body("a", "revolute", "z", axis=(1, 0, 0))
    b.add_body("b", "revolute", "a", axis=(0, 1, 0))
    tensor = np.diag([0.01] * 3)
    b.add_body("body", "revolute", "b", axis=(0, 0, 1), mass=1.0, com=(0.1, 0.02, 0.03), inertia=tensor)
    b.close_loop("L", "base", "body", "revolute", independent=("body_joint",))
    robot = b.build()
    f = od.function(robot, "constrained_dynamics")(robot.home, 0, [0, 0, 0, 0, 0, 0])[1]
    force = 9.81 * np.array([0, 0, 1])
    moment = np.cross([0.1, 0.02, 0.03], force)
    assert largest(np.array(f).ravel(), [*force, *moment[:2]]) < 1e-9


def test_limits_of_joints_that_follow_are_told():
    b = od.RobotBuilder("fast")
    b.add_link("base")
    rod = {"mass": 1.0, "com": (0.1, 0, 0), "inertia": np.diag([0.01] * 3), "axis": (0, 1, 0)}
    own = {"lower": -3, "upper": 3, "velocity": 3, "effort": 30, "acceleration": 30, "jerk": 300}
    b.add_body("a", "revolute", "base", **rod, **own)
    b.add_body("c", "revolute", "a", xyz=(0.3, 0, 0), **rod, lower=-1, upper=1, velocity=1)
    b.couple("c_joint", "a_joint", lambda x: -3 * x)
    robot = b.build()
    with pytest.raises(od.LimitError, match="'c_joint', which follows, has q = -4.5"):
        od.plan_point_to_point(robot, [0.0], [1.5])
    motion = od.plan_point_to_point(robot, [0.0], [1.5], ignore=("q", "v"))
    motion.limits = od.Limits.of(robot)
    rows = {(r.quantity, r.joint): r.value for r in motion.check().rows}
    assert rows["q", "c_joint"] == pytest.approx(-4.5, abs=1e-6)
    assert not motion.check().ok()


def test_loop_closure_refuses_what_does_not_close():
    f = od.function(linkage("planar_3rrr"), "loop_closure")
    with pytest.raises(ModelError, match="loops pin"):
        f([0.137, -0.23, -0.459])


def test_numbers_that_are_none_are_refused():
    robot = linkage("four_bar")
    for q in ([np.nan] * 3, [np.inf] * 3):
        with pytest.raises(ShapeError, match="not finite"):
            robot.close(q)
    b = od.RobotBuilder("odd")
    with pytest.raises(ModelError, match="not finite"):
        b.couple("a", "b", lambda x: x * np.nan)
    with pytest.raises(ModelError, match="other symbols"):
        b.couple("a", "b", lambda x: ca.SX.sym("u"))
    with pytest.raises(ModelError, match="expected names of joints"):
        b.couple("a", None, lambda x: x)
    with pytest.raises(ShapeError, match="each once"):
        od.function(robot, "inverse_dynamics", actuated=("crank", "crank"))
    with pytest.raises(ShapeError, match="expected names"):
        od.function(robot, "inverse_dynamics", actuated=3)
    with pytest.raises(ModelError, match="hold nothing"):
        od.function(od.robots.panda(), "constrained_dynamics", contacts={"panda_link1": "point"})


def test_derivatives_are_numbers_where_a_step_is_exactly_zero():
    robot = linkage("planar_3rrr")
    f = od.function(robot, "loop_closure")
    q = ca.MX.sym("q", robot.nq)
    slope = ca.Function("slope", [q], [ca.jacobian(f(q)[0], q)])
    rng = np.random.default_rng(0)
    points = robot.neutral() + 0.05 * rng.uniform(-1, 1, (40, robot.nq))
    found = [np.array(slope(x)) - np.array(f(x)[1]) for x in points]
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 1e-8
