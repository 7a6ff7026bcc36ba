"""Damping, friction, parallel springs, laws on floating bases: stance, rotors as bodies; impacts and their energy."""

import casadi as ca
import numpy as np
import pytest
from test_contact_phases import falling, standing
from test_floating_elastic import FEET, hopper  # noqa: F401  (a fixture)
from test_rotors import drawn, off

import oc_dyn as od
from oc_dyn import elastic as el

LAWS = {
    "motors": {"a_hip": el.LuGre(800.0, 5.0, 2.0, 3.0, 0.2, load=0.1), "b_hip": el.Stribeck(0.5, load=0.1)},
    "links": {"a_knee": el.Stribeck(0.4)},
    "springs": {"c_hip": el.Backlash(0.02), "c_knee": el.BoucWen(30.0, 5.0)},
}


def loaded(hopper, laws=None):  # noqa: F811
    """The hopper with all that acts on links besides springs and motors."""
    robot = el.elastic_robot(
        hopper.robot, 300.0, motor_inertia=0.05, damping=0.2, motor_damping=0.1, motor_friction=0.3, link_damping=0.7,
        link_friction=0.5, link_smoothing=0.4, parallel=lambda q: 10 * ca.sumsqr(q) + 3 * ca.sin(q[0]) * q[1],
    )  # fmt: skip
    return robot if laws is None else robot.with_friction(laws=laws)


def state(robot, seed=2):
    """A state of its plant, at random."""
    rng, n = np.random.default_rng(seed), el.plant(robot).size
    x = 0.3 * rng.normal(size=n)
    x[: robot.nq] = robot.links.random_configuration(seed)
    x[el.plant(robot).parts.get("friction", slice(0, 0))] *= 1e-3  # bristles are short
    return x, rng.normal(size=len(robot.motor_names))


@pytest.mark.sample(1)
@pytest.mark.parametrize("laws", [None, LAWS])
def test_flight_is_the_plant(hopper, laws):  # noqa: F811
    robot = loaded(hopper, laws)
    x, u = state(robot)
    flight = np.ravel(el.stance_rates(robot, ())(x, u, [0, 0])[0])
    plant = np.ravel(el.plant(robot).rates(x, u, []))
    assert np.abs(flight - plant).max() < 1e-10 * np.abs(plant).max()


@pytest.mark.parametrize("laws", [pytest.param(None, marks=pytest.mark.slow), LAWS])
def test_power_balances_in_stance(hopper, laws):  # noqa: F811
    """d/dt of all energies of the plant = put in - taken + power of the forces on the points, at any state."""
    robot = loaded(hopper, laws)
    x, u = state(robot)
    p, parts = el.plant(robot), el.plant(robot).parts
    dx, f = (np.ravel(y) for y in el.stance_rates(robot, FEET)(x, u, [0, 0]))
    s = ca.SX.sym("x", p.size)
    slope = np.ravel(ca.Function("g", [s], [ca.gradient(ca.sum1(p.energies(s, [])), s)])(x))
    put_in, taken = np.ravel(p.powers(x, u, []))
    speeds = np.array(od.contact_points(robot.links, FEET)(x[parts["q"]], x[parts["v"]])[1])
    ground = float(np.ravel(speeds.T) @ f)
    assert slope @ dx == pytest.approx(put_in - taken + ground, rel=1e-9)


@pytest.mark.slow
def test_torques_of_the_flat_map_hold_a_robot_with_parallel_springs(hopper):  # noqa: F811
    robot = loaded(hopper).undamped()
    x, _, f = standing(robot)
    out = el.contact_flat_map(robot, FEET)(q=x[:13], f=f)
    dx = np.ravel(el.stance_rates(robot, FEET)(x, out["tau_m"], [0, 0])[0])
    assert np.abs(dx).max() < 1e-8
    run = el.simulate_contacts(robot, [el.Phase(FEET, 0.01)], lambda t, x: ca.DM(out["tau_m"]), x, dt=0.01, rtol=1e-8)
    assert np.abs(run.states - x).max() < 1e-8


@pytest.mark.slow
def test_a_defect_counts_what_acts_on_links(hopper):  # noqa: F811
    """The flat map counts it, and so do the rates: a motion that is possible has no defect with friction, either."""
    robot = el.elastic_robot(hopper.robot, 300.0, motor_inertia=0.05, parallel={"a_hip": (20.0, 0.1)}, link_damping=0.5)
    error = el.motion_error(robot, falling(robot, 0.0), 0.01, dt=0.005)
    assert np.abs(error.defect).max() < 1e-10


@pytest.mark.slow
def test_rotors_as_bodies_know_friction_and_parallel_springs(hopper):  # noqa: F811
    """Forward dynamics of links and rotors as one rigid robot, against that of the elastic one."""
    arm = el.elastic_robot(
        od.robots.chain(4), {"joint1": 300.0, "joint3": 200.0}, motor_inertia=0.2, link_damping=0.4, link_friction=0.6,
        parallel={"joint1": (40.0, 0.3), "joint2": 20.0},
    )  # fmt: skip
    for elastic in (arm, loaded(hopper)):
        rotors, given = el.with_rotors(elastic), drawn(elastic)
        Q, V = rotors.state(*given[:4])
        dv = od.function(rotors.robot, "forward_dynamics")(Q, V, rotors.torques(*given))
        assert off(rotors, given, dv) < 1e-12
        with pytest.raises(od.ModelError, match="mjcf: parallel springs are not written"):
            rotors.mjcf()


def test_rotors_know_laws_without_a_memory_alone(hopper):  # noqa: F811
    robot = loaded(hopper, {"springs": {"c_hip": el.Backlash(0.02)}, "links": {"a_knee": el.Stribeck(0.4)}})
    rotors, given = el.with_rotors(robot), drawn(robot)
    Q, V = rotors.state(*given[:4])
    dv = od.function(rotors.robot, "forward_dynamics")(Q, V, rotors.torques(*given))
    found = np.concatenate([np.ravel(x) for x in rotors.parted(dv)])
    rates = np.ravel(el.plant(robot).rates(np.concatenate([np.ravel(x) for x in given[:4]]), given[4], []))
    assert found == pytest.approx(np.concatenate([rates[13:25], rates[31:]]), rel=1e-9, abs=1e-9)
    with pytest.raises(od.ModelError, match="BoucWen at c_knee, LuGre at a_hip have a memory"):
        el.with_rotors(loaded(hopper, LAWS))


@pytest.mark.slow
def test_points_stop_at_the_start_of_the_first_phase(hopper):  # noqa: F811
    """Impulses are the change of momentum, and the energy lost is what they do at half the speed of the points."""
    x, tau, _ = standing(hopper)
    x[13:25] = 0.3 * np.random.default_rng(1).normal(size=12)
    run = el.simulate_contacts(hopper, [el.Phase(FEET, 0.001)], lambda t, x: ca.DM(tau), x, dt=0.001, rtol=1e-7)
    points, momentum = od.contact_points(hopper.links, FEET), od.function(hopper.links, "momentum")
    before, after = (np.array(points(x[:13], v)[1]) for v in (x[13:25], run.v[0]))
    assert np.abs(before).max() > 0.1
    assert np.abs(after).max() < 1e-12
    change = np.subtract(*(np.ravel(momentum(q=x[:13], v=v)["h"]) for v in (run.v[0], x[13:25])))
    assert sum(run.impulses[0].values()) == pytest.approx(change[3:], abs=1e-9)
    work = -0.5 * sum(run.impulses[0][name] @ before[:, k] for k, name in enumerate(FEET))
    assert run.lost == pytest.approx([work], rel=1e-9)
    assert work > 0
    M = np.array(od.function(hopper.links, "mass_matrix")(x[:13]))
    assert work == pytest.approx((x[13:25] @ M @ x[13:25] - run.v[0] @ M @ run.v[0]) / 2, rel=1e-9)
    assert run.slip < 1e-9


def test_phases_are_checked():
    for phase, words in (
        (("a_foot", -0.01), "duration is -0.01"), (("a_foot", 0.1), "contacts is 'a_foot'"),
        ((("a_foot",), float("nan")), "duration is nan"), ((("a_foot",), -0.01), "above 0"),
        ((("a_foot", "a_foot"), 0.1), "twice"), ((None, 0.1), "contacts is None"),
    ):  # fmt: skip
        with pytest.raises(od.ShapeError, match=words if phase[0] != "a_foot" else "contacts is 'a_foot'"):
            el.Phase(*phase)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"rtol": -1}, "rtol is -1"),
        ({"dt": -1}, "dt is -1"),
        ({"dt": 0}, "dt is 0"),
        ({"dt": 1e-12}, "dt is 1e-12 s, expected at least"),
        ({"atol": 0}, "atol is 0"),
        ({"gain": -1}, "gain is -1"),
        ({"gain": float("nan")}, "gain is nan"),
        ({"phases": el.Phase(FEET, 0.1)}, "expected a list of od.elastic.Phase"),
        ({"phases": [(FEET, 0.1)]}, "expected a list of od.elastic.Phase"),
        ({"torques": lambda t, x: ca.DM.zeros(5)}, "gives 5 torques, expected 6"),
        ({"torques": lambda t, x: "a"}, "torques: got 'a'"),
        ({"torques": 3.0}, "expected a function"),
        ({"torques": ca.Function("f", [ca.SX.sym("t")], [ca.SX(6, 1)])}, "expected .t, x. -> tau_m"),
    ],
)
def test_settings_of_simulations_are_checked(hopper, given, words):  # noqa: F811
    start = np.concatenate([hopper.links.neutral(), np.zeros(24)])
    own = {"phases": [el.Phase(FEET, 0.01)], "torques": lambda t, x: ca.DM.zeros(6), "start": start}
    with pytest.raises(od.ShapeError, match=words):
        el.simulate_contacts(hopper, **{**own, **given})


@pytest.mark.slow
def test_settings_of_motion_error_are_checked(hopper):  # noqa: F811
    for dt in (0, -1.0, float("nan")):
        with pytest.raises(od.ShapeError, match="motion_error: dt is"):
            el.motion_error(hopper, falling(hopper, 0.0), 0.01, dt=dt)
    with pytest.raises(od.ShapeError, match="motion_error: the motion is 3"):
        el.motion_error(hopper, 3, 0.01)
    with pytest.raises(od.ModelError, match="for simulation alone"):
        el.motion_error(loaded(hopper, LAWS), falling(hopper, 0.0), 0.01)


@pytest.mark.parametrize("contacts", [None, 3, "a_foot", ("a_foot", "a_foot"), np.array([1, 2]), (None, 1)])
def test_contacts_are_names(hopper, contacts):  # noqa: F811
    for make in (
        lambda: el.stance_rates(hopper, contacts), lambda: el.contact_flat_map(hopper, contacts),
        lambda: el.contact_forces(hopper, contacts), lambda: el.flatness(hopper, contacts, hopper.links.neutral()),
        lambda: el.motion_error(hopper, None, 0.01, contacts), lambda: el.Phase(contacts, 0.1),
    ):  # fmt: skip
        with pytest.raises(od.ShapeError, match="contacts is"):
            make()
