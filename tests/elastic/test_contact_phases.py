"""Floating elastic robots through stance, flight and touch-down, and what a defect of a motion costs."""

import casadi as ca
import numpy as np
import pytest
from test_floating_elastic import FEET, _motion, hopper  # noqa: F401  (a fixture)

import oc_dyn as od
from oc_dyn import elastic as el


def standing(hopper):  # noqa: F811
    """(state, motor torques) of the hopper at rest on three points."""
    robot, zero = hopper.links, np.zeros(12)
    q = robot.neutral()
    q[7:] = 0.05, 0.1, -0.1, 0.1, 0.1, 0.1
    q[6] = -np.array(od.contact_points(robot, FEET)(q, zero)[0])[2].mean()
    f = np.array(el.contact_forces(hopper, FEET, order=0)(q, zero, zero, np.zeros((3, 3))))
    out = el.contact_flat_map(hopper, FEET)(q=q, f=f)
    return np.concatenate([q, zero, np.ravel(out["theta"]), np.zeros(6)]), np.ravel(out["tau_m"]), f


@pytest.mark.slow
def test_it_stands_still_under_the_torques_of_its_flat_map(hopper):  # noqa: F811
    x, tau, f = standing(hopper)
    run = el.simulate_contacts(hopper, [el.Phase(FEET, 0.02)], lambda t, x: ca.DM(tau), x, dt=0.01, rtol=1e-8)
    assert np.abs(run.states - x).max() < 1e-8
    total = sum(force[-1] for force in run.forces.values())
    assert np.abs(total - [0, 0, 9.81 * hopper.links.total_mass]).max() < 1e-6
    assert run.slip < 1e-10
    assert f[2].min() > 0


@pytest.mark.slow
def test_flight_and_touch_down_keep_what_they_must(hopper):  # noqa: F811
    """The centre of mass falls freely; feet stop at the touch-down, whose impulses are the change of momentum."""
    x, tau, _ = standing(hopper)
    x[6] += 0.05
    phases = [el.Phase((), 0.08), el.Phase(FEET, 0.01)]
    run = el.simulate_contacts(hopper, phases, lambda t, x: ca.DM(tau), x, dt=0.04, rtol=1e-9)
    com = od.function(hopper.links, "com")
    height = [float(com(q=q)["c"][2]) for q in (run.q[0], run.q[2])]
    assert height[1] - height[0] == pytest.approx(-9.81 * 0.08**2 / 2, abs=1e-9)
    momentum = od.function(hopper.links, "momentum")
    before, after = (np.ravel(momentum(q=run.q[k], v=run.v[k])["h"]) for k in (2, 3))
    assert np.abs(sum(run.impulses[1].values()) - (after - before)[3:]).max() < 1e-9
    speed = np.array(od.contact_points(hopper.links, FEET)(run.q[3], run.v[3])[1])
    assert np.abs(speed).max() < 1e-10
    assert np.array_equal(run.dtheta[2], run.dtheta[3])


def test_arguments_of_simulations_are_checked(hopper):  # noqa: F811
    x, tau, _ = standing(hopper)
    for phases, laws, message in (([], None, "no phase"), ([el.Phase((), 0.1)], [None, None], "got 2 laws")):
        with pytest.raises(od.ShapeError, match=message):
            el.simulate_contacts(hopper, phases, laws, x)
    with pytest.raises(od.ShapeError, match="start"):
        el.simulate_contacts(hopper, [el.Phase((), 0.1)], None, x[:-1])
    with pytest.raises(od.ShapeError, match="lacks d3v"):
        t, motion = _motion(hopper.links, 2)
        el.motion_error(hopper, ca.Function("m", [t], motion, ["t"], ["q", "v", "dv", "d2v"]), 0.1)


def falling(hopper, spoilt):  # noqa: F811
    """Function t -> q, v, .. of a free fall with still legs, to which a motion of the trunk of size `spoilt` [m] is
    added that no force makes."""
    t = ca.SX.sym("t")
    com = np.ravel(od.function(hopper.links, "com")(q=standing(hopper)[0][:13])["c"])
    z = com[2] - 9.81 * t**2 / 2 + spoilt * ca.sin(20 * t)
    at = ca.DM(standing(hopper)[0][7:13])
    q = ca.vertcat(1, 0, 0, 0, 0, 0, z, at)
    v = [ca.vertcat(ca.SX(5, 1), ca.jacobian(z, t), ca.SX(6, 1))]
    for _ in range(3):
        v.append(ca.densify(ca.jacobian(v[-1], t)))
    return ca.Function("fall", [t], [q, *v], ["t"], ["q", "v", "dv", "d2v", "d3v"])


def test_a_motion_that_is_possible_has_no_defect(hopper):  # noqa: F811
    error = el.motion_error(hopper, falling(hopper, 0.0), 0.02, dt=0.005)
    assert np.abs(error.defect).max() < 1e-10
    assert error.bound.max() < 1e-12
    assert np.abs(error.tau_base).max() < 1e-10


@pytest.mark.slow
def test_the_error_of_an_impossible_motion_is_predicted_and_bounded(hopper):  # noqa: F811
    motion, T = falling(hopper, 1e-5), 0.1
    error = el.motion_error(hopper, motion, T)
    t, x = ca.MX.sym("t"), ca.MX.sym("x", 37)
    flat = el.contact_flat_map(hopper, ())
    out = flat(**{n: y for n, y in motion(t=t).items() if n in flat.name_in()})
    law = ca.Function("law", [t, x], [out["tau_m"]])
    run = el.simulate_contacts(hopper, [el.Phase((), T)], law, error.reference[0], dt=T / 10, rtol=1e-11)
    rows = slice(None, None, len(error.t) // 10)
    off = run.states - error.reference[rows]
    assert np.abs(off).max() > 1e-6
    assert np.abs(off - error.first[rows]).max() < 1e-3 * np.abs(off).max() + 1e-9
    assert np.all(np.abs(off) <= 1.001 * error.bound[rows] + 1e-9)
    assert error.bound.max() < 20 * np.abs(off).max()
