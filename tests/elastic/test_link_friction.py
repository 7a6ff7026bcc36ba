"""Damping and friction on the links' side: in the flat map, its inverse, the plant, the powers, and as the file gives
them."""

import casadi as ca
import numpy as np
import pytest
from elastic_arms import arm, planar_arm, random_ports, swing, textbook_arm

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.robots import linkages

D, F, S = np.array([2.0, 1.0]), np.array([1.5, 0.5]), np.array([0.4, 0.3])
K, B = np.array([500.0, 300.0]), np.array([0.4, 0.2])


def rubbing():
    return el.elastic_robot(
        planar_arm(2), K, damping=[3.0, 2.0], motor_inertia=B, motor_damping=0.3, link_damping=D, link_friction=F,
        link_smoothing=S,
    )  # fmt: skip


def by_hand(x, u):
    """Rates of the planar arm of two joints with links of 0.4 m and 3 kg, from its textbook equations."""
    q, v, theta, dtheta = np.split(x, 4)
    M, bias = textbook_arm(q, v)
    spring = K * (theta - q) + [3.0, 2.0] * (dtheta - v)
    taken = D * v + F * np.tanh(v / S)
    dv = np.linalg.solve(M, spring - taken - bias)
    return np.concatenate([v, dv, dtheta, (u - 0.3 * dtheta - spring) / B])


def test_rates_are_those_written_by_hand():
    p = el.plant(rubbing())
    rng = np.random.default_rng(0)
    for _ in range(5):
        x, u = rng.normal(size=8), rng.normal(size=2)
        expected = by_hand(x, u)
        assert p.rates(x, u, ca.DM(0, 1)).full().ravel() == pytest.approx(expected, rel=1e-11, abs=1e-11)
        accelerations = np.concatenate([expected[2:4], expected[6:]])
        assert np.abs(p.residual(x, accelerations, u, ca.DM(0, 1)).full()).max() < 1e-10 * np.abs(expected).max()


def test_energy_that_friction_takes_is_missing():
    """d/dt of all energies = put in - taken, at random states; of tree and loop."""
    crank = linkages.four_bar()
    loop = el.elastic_robot(
        crank, 80.0, motor_inertia=0.1, actuated=["rocker"], link_damping=0.7, link_friction=0.4, link_smoothing=0.2
    )
    for e in (rubbing(), arm("rubbing"), loop):
        p = el.plant(e)
        x, u, none = ca.SX.sym("x", p.size), ca.SX.sym("u", p.controls), ca.DM(0, 1)
        energy = ca.sum1(p.energies(x, none))
        rate = ca.Function("rate", [x, u], [ca.jtimes(energy, x, p.rates(x, u, none))])
        rng = np.random.default_rng(1)
        for _ in range(3):
            at = rng.normal(size=p.size)
            at[: e.nq] = 0.1 * at[: e.nq] - (1.0 if e is loop else 0.0)
            tau = rng.normal(size=p.controls)
            put_in, taken = p.powers(at, tau, none).full().ravel()
            assert float(rate(at, tau)) == pytest.approx(put_in - taken, rel=1e-9, abs=1e-9)
            assert taken > 0


def test_the_flat_map_pays_for_friction():
    """What the torques of the springs must be is more by the friction, differences of it give its derivatives."""
    e = arm("rubbing")
    plain = e.with_friction(link_damping=0.0, link_friction=0.0)
    f, g = (od.function(x, "elastic_flat_map") for x in (e, plain))
    ports = random_ports(f, "rubbing", 3)
    more, less = f(**ports), g(**ports)
    v = ports["v"].ravel()
    taken = e.link_damping * v + e.link_friction * np.tanh(v / e.link_smoothing)
    elastic = [j.v for j in e.joints]
    gap = (more["theta"] - less["theta"]).full().ravel()
    assert gap == pytest.approx(taken[elastic] / e.linear_stiffness(), rel=1e-9)
    m = e.rigid_motors[0]
    assert float(more["tau_m"][m] - less["tau_m"][m]) == pytest.approx(taken[1], rel=1e-9)


def test_derivatives_of_the_analytic_flat_map():
    from oc_dyn.elastic.flat_map import analytic_flat_map

    e = arm("rubbing")
    plain, analytic = od.function(e, "elastic_flat_map"), analytic_flat_map(e)
    ports = random_ports(plain, "rubbing", 4)
    values = list(ports.values())
    for x, y in zip(plain.call([ca.DM(v) for v in values]), analytic.call([ca.DM(v) for v in values]), strict=True):
        assert x.full() == pytest.approx(y.full(), rel=1e-9, abs=1e-9)
    direction = [np.random.default_rng(5).normal(size=v.shape) for v in values]
    h = 1e-6
    ahead, behind = (plain.call([ca.DM(v + s * d) for v, d in zip(values, direction, strict=True)]) for s in (h, -h))
    x = [ca.MX.sym("x", *v.shape) for v in values]
    flat = ca.vertcat(*x)
    along = ca.jtimes(ca.vertcat(*analytic.call(x)), flat, ca.vertcat(*map(ca.DM, direction)))
    slope = ca.Function("slope", x, [along]).call([ca.DM(v) for v in values])[0].full()
    difference = np.concatenate([(a - b).full() for a, b in zip(ahead, behind, strict=True)]) / (2 * h)
    assert slope == pytest.approx(difference, rel=1e-5, abs=1e-4)


@pytest.mark.slow
def test_feedback_linearisation_is_exact_with_friction_of_links():
    e = rubbing().undamped()
    reference = el.reference(e, swing(2), duration=0.5)
    law = el.feedback_linearization(e, 20.0)
    run = el.simulate(e, law, reference, rtol=1e-11)
    assert run.largest_error < 1e-8
    assert run.taken[-1] > 0.1


def test_values_by_name_and_in_errors():
    e = el.elastic_robot(planar_arm(2), 500.0, motor_inertia=0.3, link_damping={"joint2": 0.5}, link_friction=[0.1, 0])
    assert e.link_damping.tolist() == [0.0, 0.5]
    assert e.link_friction.tolist() == [0.1, 0.0]
    assert "link of joint2: damping 0.5" in str(e)
    other = e.with_errors(damping=0.2, friction=-0.5)
    assert other.link_damping == pytest.approx([0.0, 0.6])
    assert other.link_friction == pytest.approx([0.05, 0.0])
    real = e.with_friction(damping=5.0, motor_friction={"joint1": 2.0}, link_damping=0.0)
    assert [j.spring.damping for j in real.joints] == [5.0, 5.0]
    assert real.motor_friction.tolist() == [2.0, 0.0]
    assert not real.link_damping.any()
    assert real.link_friction.tolist() == [0.1, 0.0]
    with pytest.raises(od.ModelError, match="link_damping: got 3 values"):
        e.with_friction(link_damping=[1, 2, 3])
    with pytest.raises(od.UnknownName, match="velocity.*elbow"):
        el.elastic_robot(planar_arm(2), 500.0, motor_inertia=0.3, link_friction={"elbow": 1.0})
    with pytest.raises(od.ModelError, match="link_smoothing: .* positive"):
        el.elastic_robot(planar_arm(2), 500.0, motor_inertia=0.3, link_smoothing=0.0)


URDF = """<robot name="one"><link name="base"/><link name="link"><inertial><origin xyz="0.3 0 0"/><mass value="1"/>
<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge" type="revolute"><parent link="base"/><child link="link"/><axis xyz="0 0 1"/>
<limit lower="-2" upper="2" effort="9" velocity="9"/><dynamics damping="0.4" friction="0.2"/></joint></robot>"""


def test_friction_of_a_file_counts_where_it_is_asked_to(tmp_path):
    path = tmp_path / "one.urdf"
    path.write_text(URDF)
    robot = od.load_urdf(path)
    with pytest.warns(od.ModelWarning, match='joints hinge are ignored.*joint_friction="links"'):
        silent = el.elastic_robot(robot, 100.0, motor_inertia=0.1)
    assert not silent.link_damping.any()
    links = el.elastic_robot(robot, 100.0, motor_inertia=0.1, joint_friction="links", link_damping=0.1)
    assert (links.link_damping[0], links.link_friction[0], links.motor_damping[0]) == (0.5, 0.2, 0.0)
    motors = el.elastic_robot(robot, 100.0, motor_inertia=0.1, joint_friction="motors")
    assert (motors.motor_damping[0], motors.motor_friction[0], motors.link_damping[0]) == (0.4, 0.2, 0.0)
    with pytest.raises(od.ModelError, match="joint_friction is 'gears'"):
        el.elastic_robot(robot, 100.0, motor_inertia=0.1, joint_friction="gears")
    f = od.function(links, "elastic_forward_dynamics")
    still, moving = (float(f(v=v)["dv"][0]) for v in (0.0, 1.0))
    rigid = od.function(robot, "forward_dynamics", friction=True)
    assert moving - still == pytest.approx(float(rigid(v=1.0)["dv"]) - 0.1 / 0.1, rel=1e-9)
