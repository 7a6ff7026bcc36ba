"""Elastic robots as rigid ones with rotors: accelerations against our own, Pinocchio's and MuJoCo's."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import elastic as el

SPIN, RATIO = np.array([1e-4, 2e-4, 1e-4, 3e-4]), np.array([50.0, -60.0, 80.0, 100.0])


def complete(damping=0.4):
    arm = od.robots.chain(4)
    coupling = el.motor_coupling(arm, SPIN, RATIO)
    given = {"rotor_inertia": SPIN, "gear_ratio": RATIO, "coupling": coupling}
    return el.elastic_robot(arm, [300.0, 400.0, 500.0, 600.0], damping=damping, motor_friction=0.3, **given)


def reduced():
    arm = od.robots.chain(4)
    return el.elastic_robot(arm, {"joint1": 300.0, "joint3": 200.0}, motor_inertia=0.2, motor_damping=0.1)


def quadruped():
    return el.elastic_robot(od.robots.quadruped(), 400.0, motor_inertia=0.05, damping=0.3)


ROBOTS = {"complete": complete, "reduced": reduced, "quadruped": quadruped}
SOME = pytest.mark.parametrize("name", ["complete", "reduced", pytest.param("quadruped", marks=pytest.mark.slow)])


def drawn(elastic, seed=1):
    """(q, v, theta, dtheta, tau_m) at random."""
    rng, m = np.random.default_rng(seed), len(elastic.elastic_motors)
    q = elastic.links.random_configuration(seed)
    return q, rng.normal(size=elastic.nv), *rng.normal(size=(2, m)), rng.normal(size=len(elastic.motor_names))


def own(elastic, given):
    """[dv; d2theta] of the elastic robot."""
    f = od.function(elastic, "elastic_forward_dynamics")
    out = f(**dict(zip(("q", "v", "theta", "dtheta", "tau_m"), given, strict=True)))
    return np.concatenate([np.ravel(out["dv"]), np.ravel(out["d2theta"])])


def off(rotors, given, dv):
    """Largest difference of accelerations of a robot with rotors from those of the elastic robot, relative."""
    found = np.concatenate([np.ravel(x) for x in rotors.parted(dv)])
    expected = own(rotors.elastic, given)
    return np.abs(found - expected).max() / np.abs(expected).max()


@SOME
def test_bodies_that_spin_give_the_elastic_robots_accelerations(name):
    elastic = ROBOTS[name]()
    rotors, given = el.with_rotors(elastic), drawn(elastic)
    assert rotors.carried == (name == "complete")
    Q, V = rotors.state(*given[:4])
    dv = od.function(rotors.robot, "forward_dynamics")(Q, V, rotors.torques(*given))
    assert off(rotors, given, dv) < 1e-12
    assert rotors.robot.nv == elastic.nv + len(elastic.elastic_motors)


@pytest.mark.parametrize("name", ROBOTS)
def test_pinocchio_finds_them_too(name):
    pin = pytest.importorskip("pinocchio")
    elastic = ROBOTS[name]()
    rotors, given = el.with_rotors(elastic), drawn(elastic, 2)
    model = rotors.pinocchio()
    to = od.interop.to_pinocchio(rotors.robot, model)
    Q, V = (np.ravel(x) for x in rotors.state(*given[:4]))
    tau = np.ravel(rotors.torques(*given))
    q, v = to.q(Q), to.v(V, Q)
    dv = pin.aba(model, model.createData(), q, v, to.tau(tau, Q))
    assert off(rotors, given, to.from_dv(dv, v, q)) < 1e-9


@SOME
def test_mujoco_finds_them_too_with_springs_of_its_own(name):
    mujoco = pytest.importorskip("mujoco")
    elastic = ROBOTS[name]()
    rotors, given = el.with_rotors(elastic), drawn(elastic, 3)
    model = mujoco.MjModel.from_xml_string(rotors.mjcf())
    data = mujoco.MjData(model)
    to = od.interop.to_mujoco(rotors.robot, model)
    Q, V = (np.ravel(x) for x in rotors.state(*given[:4]))
    data.qpos[:], data.qvel[:] = to.q(Q), to.v(V, Q)
    data.qfrc_applied[:] = to.tau(_of_motors(rotors, given), Q)
    mujoco.mj_forward(model, data)
    assert off(rotors, given, to.from_dv(data.qacc, data.qvel, data.qpos)) < 1e-9


def _of_motors(rotors, given):
    """Forces of motors and their friction alone, springs being MuJoCo's."""
    elastic = rotors.elastic
    q, v, theta, dtheta, tau_m = given
    stiff = np.ravel(rotors.torques(q, v, theta, dtheta, tau_m))
    rates = np.ravel(rotors.torques(q, v, theta, dtheta, 0 * tau_m))
    unloaded = np.ravel(rotors.torques(q, 0 * v, theta, 0 * dtheta, 0 * tau_m))
    tau = stiff - rates  # motors
    dampers = np.zeros(len(tau))
    rows = {j.name: j.v_index for j in rotors.robot.joints}
    for j in elastic.joints:
        k = j.theta[0]
        rate = j.spring.damping * (dtheta[k] - v[j.v])
        dampers[rows[j.name]] += rate
        dampers[rows[f"{elastic.theta_names[k]}.rotor"]] -= rate / rotors.ratio[k]
    return tau + (rates - unloaded) - dampers  # friction


@pytest.mark.slow
def test_neglect_of_the_reduced_model_falls_with_the_gear_ratio():
    """Rotors on the links against the reduced model: off by the order of one over the ratio, on a floating base."""
    errors = []
    for ratio in (20.0, 200.0, 2000.0):
        elastic = el.elastic_robot(od.robots.quadruped(), 400.0, rotor_inertia=0.05 / ratio**2, gear_ratio=ratio)
        rotors, given = el.with_rotors(elastic, carried=True), drawn(elastic)
        Q, V = rotors.state(*given[:4])
        dv = od.function(rotors.robot, "forward_dynamics")(Q, V, rotors.torques(*given))
        errors.append(off(rotors, given, dv))
    assert errors[0] > 1e-3
    assert np.allclose(np.divide(errors[:-1], errors[1:]), 10, rtol=0.1)


def test_links_with_standing_rotors_are_the_links_as_given():
    rotors = el.with_rotors(complete())
    assert rotors.robot.total_mass == pytest.approx(od.robots.chain(4).total_mass + 1.0, rel=1e-12)  # one on the ground


def test_what_has_no_rotors_is_refused_by_name():
    arm = od.robots.planar_arm(2)
    mixed = el.elastic_robot(arm, 300.0, motor_inertia=[[0.2, 0.05], [0.05, 0.2]])
    with pytest.raises(od.ModelError, match="inertias of motors are coupled"):
        el.with_rotors(mixed)
    heavy = el.elastic_robot(od.robots.chain(3), 300.0, rotor_inertia=50.0)
    with pytest.raises(od.ModelError, match="has not the inertia to carry"):
        el.with_rotors(heavy, carried=True)
    other = el.elastic_robot(arm, 300.0, rotor_inertia=1e-4, gear_ratio=50.0, coupling=[[0.0, 1e-3], [0.0, 0.0]])
    with pytest.raises(od.ModelError, match="coupling is not that of rotors"):
        el.with_rotors(other)
    with pytest.raises(od.ModelError, match="complete model has carried rotors"):
        el.with_rotors(complete(), carried=False)
    variable = el.elastic_robot(arm, el.VariableSpring(), motor_inertia=0.1)
    with pytest.raises(od.ModelError, match="stiffness of joint1 is a coordinate"):
        el.with_rotors(variable)
    law = el.elastic_robot(arm, el.NonlinearSpring(lambda z: 100 * z + z**3), motor_inertia=0.1)
    with pytest.raises(od.ModelError, match="spring of joint1 is not linear"):
        el.with_rotors(law).mjcf()


@pytest.mark.slow
def test_a_stance_is_that_of_pinocchio_with_rotors():
    """Accelerations and forces of the quadruped held at its feet: pinocchio.constraintDynamics of links and rotors."""
    pin = pytest.importorskip("pinocchio")
    elastic, feet = quadruped(), ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
    rotors, given = el.with_rotors(elastic), drawn(elastic, 4)
    state = np.concatenate([np.ravel(x) for x in given[:4]])
    dx, f = (np.ravel(x) for x in el.stance_rates(elastic, feet)(state, given[4], [0, 0]))
    model = rotors.pinocchio()
    to = od.interop.to_pinocchio(rotors.robot, model)
    Q, V = (np.ravel(x) for x in rotors.state(*given[:4]))
    q, v = to.q(Q), to.v(V, Q)
    held = []
    for name in feet:
        frame = elastic.links.frame(name)
        joint = model.getJointId(elastic.links.bodies[frame.body - 1].joint.name)
        place = pin.SE3(np.array(frame.rotation), np.array(frame.translation))
        held.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, joint, place, pin.LOCAL_WORLD_ALIGNED))
    data, parts = model.createData(), [x.createData() for x in held]
    pin.initConstraintDynamics(model, data, held, parts)
    tau = to.tau(np.ravel(rotors.torques(*given)), Q)
    dv = pin.constraintDynamics(model, data, q, v, tau, held, parts, pin.ProximalSettings(1e-14, 0.0, 1))
    found = np.concatenate([np.ravel(x) for x in rotors.parted(to.from_dv(np.array(dv), v, q))])
    own_dv = np.concatenate([dx[19:37], dx[49:]])
    assert np.abs(found - own_dv).max() < 1e-9 * np.abs(own_dv).max()
    theirs = np.concatenate([x.contact_force.linear for x in parts])
    off_by = min(np.abs(theirs - f).max(), np.abs(theirs + f).max())  # theirs may be those on the ground
    assert off_by < 1e-9 * np.abs(f).max()
