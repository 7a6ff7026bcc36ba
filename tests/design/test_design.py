"""Design parameters and sensitivities: against robots built anew, against AD, on joints of every kind."""

import numpy as np
import pytest
from samples import build, random_ports, relative, robot

import oc_dyn as od
from oc_dyn import design

STEP = 1e-5


def parameters_of(r):
    """Parameters of every kind that the robot has, some of several parts, some on the same joint."""
    joints = [b.joint for b in r.bodies if b.joint.name != "root_joint"]
    links = [b.name for b in r.bodies]
    inner = [b.joint for b in r.bodies if b.parent][-1].name
    out = [
        design.link_length(inner, density=2.0) + 0.5 * design.mass(links[0]),
        design.joint_rotation(joints[0].name, (1, 2, 3)),
        design.link_length(inner, (1, -1, 0.5)),
        design.inertial_parameter(links[1], 6),
        design.mass(links[-1], at=(0.1, -0.2, 0.3)) * 2,
    ]
    tilting = [j.name for j in joints if j.kind in ("revolute", "prismatic", "helical", "cylindrical")]
    if tilting:
        out += [design.joint_axis(tilting[0], (1, 0.3, 0)), design.joint_axis(tilting[0], (0, 1, 0.3))]
    return out + [design.pitch(j.name) for j in joints if j.kind == "helical"][:1]


def rebuilt(r, parameters, p, quantity, options, ports):
    """Outputs of the quantity of the robot built anew with the parameters at p."""
    f = od.function(design.changed(r, dict(zip(parameters, p, strict=True))), quantity, **options)
    return {n: np.array(y) for n, y in f(**{n: ports[n] for n in f.name_in()}).items()}


def slopes(r, parameters, x, weights, quantity, options):
    """Central differences of robots built anew, along a direction in the space of the parameters, and the motion's."""
    m, pair = len(parameters), []
    for step in (STEP, -STEP):
        moved = {}
        for n in x:
            if f"d{n}_dp" in x:
                d = step * sum(
                    w * y for w, y in zip(weights, np.split(np.array(x[f"d{n}_dp"]), m, axis=1), strict=True)
                )
                moved[n] = r.integrate(x[n], d.ravel()) if n == "q" else np.reshape(x[n], d.shape) + d
        pair.append(rebuilt(r, parameters, x["p"] + step * weights, quantity, options, moved))
    return {n: (pair[0][n] - pair[1][n]) / (2 * STEP) for n in pair[0]}


CASES = [
    ("inverse_dynamics", "transform"),
    ("inverse_dynamics", "mimic"),
    ("forward_dynamics", "helical"),
    ("forward_dynamics", "universal"),
    ("hybrid_dynamics", "cylindrical"),
    ("hybrid_dynamics", "floating"),
]


@pytest.mark.sample(1)
@pytest.mark.parametrize("quantity, name", CASES)
def test_sensitivities(quantity, name):
    """Of all parameters at once and away from zero, while the motion depends on them: values and slopes of robots
    built anew, and AD."""
    r = robot(name)
    options = {"external_wrenches": True}
    if quantity == "hybrid_dynamics":
        options["prescribed"] = tuple(j.name for j in r.joints[::2])
    parameters = parameters_of(r)
    m = len(parameters)
    f, g = (od.sensitivity(r, quantity, parameters, method=k, **options) for k in ("recursive_scalar", "ad"))
    x = random_ports(f, r, 1)
    for p in (np.zeros(m), 0.1 * np.random.default_rng(3).normal(size=m)):
        x["p"] = p
        found = f(**x)
        for n, y in g(**x).items():
            assert relative(found[n], y) < 1e-11, n
        values = rebuilt(r, parameters, p, quantity, options, x)
        outputs = [n for n in found if not n.endswith("_dp")]
        assert len(found) == 2 * len(outputs)
        assert all(relative(found[n], values[n]) < 1e-11 for n in outputs)
    for seed in (5, 6):  # at the last p, which is not zero
        weights = np.random.default_rng(seed).normal(size=m)
        expected = slopes(r, parameters, x, weights, quantity, options)
        for n in outputs:
            assert relative(np.array(found[f"d{n}_dp"]) @ weights.reshape(-1, 1), expected[n]) < 1e-5, n


def test_motion_alone():
    """Without what the robot changes, sensitivities are the partials times the motion's derivatives."""
    r = robot("serial")
    f = od.sensitivity(r, "inverse_dynamics", design.mass("link2"))
    x = random_ports(f, r, 2)
    partials = od.function(r, "inverse_dynamics_partials")(**{n: x[n] for n in ("q", "v", "dv")})
    moved = sum(np.array(partials[f"dtau_d{n}"]) @ x[f"d{n}_dp"] for n in ("q", "v", "dv"))
    still = {**x, "dq_dp": 0, "dv_dp": 0, "ddv_dp": 0, "p": 0}
    alone = np.array(f(**still)["dtau_dp"])
    assert relative(np.array(f(**{**x, "p": 0})["dtau_dp"]) - alone, moved) < 1e-11
    heavier = od.function(design.changed(r, {design.mass("link2"): 1.0}), "inverse_dynamics")
    motion = {n: x[n] for n in ("q", "v", "dv")}  # linear in a mass
    expected = np.array(heavier(**motion)["tau"]) - np.array(od.function(r, "inverse_dynamics")(**motion)["tau"])
    assert relative(alone, expected) < 1e-11


def tool_arm():
    """Two joints, and beyond the last a camera on a fixed bracket on a fixed plate."""
    b = od.RobotBuilder("tool arm")
    b.add_link("base")
    for k in (1, 2):
        b.add_body(f"arm{k}", "revolute", "base" if k == 1 else "arm1", joint=f"hinge{k}", axis=(0, k - 1, 2 - k),
                   mass=2, com=(0.1, 0, 0.05), inertia=np.diag([0.01, 0.02, 0.02]), xyz=(0.3, 0, 0.1))  # fmt: skip
    b.add_link("plate", mass=0.5, inertia=np.diag([1e-3, 2e-3, 2e-3]))
    b.add_link("camera", mass=0.7, com=(0, 0.02, 0.1), inertia=np.diag([1e-3, 3e-3, 2e-3]))
    b.add_joint("flange", "fixed", parent="arm2", child="plate", xyz=(0.2, 0, 0), rpy=(0.3, 0.1, -0.4))
    b.add_joint("bracket", "fixed", parent="plate", child="camera", xyz=(0, 0.1, 0.05), rpy=(0, 0.5, 0))
    b.add_body("probe", "prismatic", "camera", joint="slide", axis=(1, 1, 0), mass=0.3, com=(0, 0, 0.1),
               inertia=1e-3 * np.eye(3), xyz=(0.05, 0, 0))  # fmt: skip
    return b.build()


@pytest.mark.slow
def test_fixed_joints_move_what_they_carry():
    r = tool_arm()
    parameters = [
        design.joint_rotation("bracket", (1, 0, 2)),
        design.link_length("flange", density=1.5),
        design.joint_rotation("flange", (0, 1, 1)),
        design.link_length("bracket", (0, 1, 0)) + design.mass("camera"),
    ]
    f, g = (od.sensitivity(r, "inverse_dynamics", parameters, method=k) for k in ("recursive_scalar", "ad"))
    x = random_ports(f, r, 4) | {"p": np.array([0.3, -0.05, 0.4, 0.02])}
    found = f(**x)
    assert relative(found["dtau_dp"], g(**x)["dtau_dp"]) < 1e-12
    assert relative(found["tau"], rebuilt(r, parameters, x["p"], "inverse_dynamics", {}, x)["tau"]) < 1e-12
    for weights in np.eye(4):
        slope = slopes(r, parameters, x, weights, "inverse_dynamics", {})["tau"]
        assert relative(np.array(found["dtau_dp"]) @ weights.reshape(-1, 1), slope) < 1e-6


def test_rod_of_a_longer_link():
    """Mass, centre and tensor of a link that grew by a slender rod."""
    r = build(["revolute", "revolute"], seed=3)
    joint, before = r.joint("joint2"), r.body("link1").inertia
    after = design.changed(r, {design.link_length("joint2", (0, 0, 1), density=2.0): 0.3}).body("link1").inertia
    a, b = joint.translation, joint.translation + [0, 0, 0.3]
    assert after.mass - before.mass == pytest.approx(0.6)
    assert after.moment - before.moment == pytest.approx(0.6 * (a + b) / 2)
    points, weights = np.polynomial.legendre.leggauss(4)  # exact for the square of a line
    tensor = np.zeros((3, 3))
    for s, w in zip((points + 1) / 2, weights / 2, strict=True):
        x = a + s * (b - a)
        tensor += 0.6 * w * (x @ x * np.eye(3) - np.outer(x, x))
    assert after.tensor - before.tensor == pytest.approx(tensor)


def test_changed_keeps_the_rest():
    r = od.robots.panda()
    name = r.joints[3].name
    longer = design.changed(r, {design.link_length(name, (1, 0, 0)): 0.05})
    assert longer.joint(name).translation == pytest.approx(r.joint(name).translation + [0.05, 0, 0])
    assert longer.coordinate_names == r.coordinate_names
    assert longer.gravity == pytest.approx(r.gravity)
    assert np.array_equal(longer.limit("velocity"), r.limit("velocity"))
    assert design.changed(r, {}).parameters == pytest.approx(r.parameters)


@pytest.mark.parametrize(
    "make, error, text",
    [
        (lambda: design.link_length("elbow"), od.UnknownName, "joint.*elbow"),
        (lambda: design.mass("nowhere"), od.UnknownName, "link.*nowhere"),
        (lambda: design.mass("link0"), od.ModelError, "link0 is fixed to the ground"),
        (lambda: design.pitch("joint1"), od.ModelError, "only helical"),
        (lambda: design.joint_axis("joint1", (0, 0, 0)), od.ShapeError, "direction"),
        (lambda: design.joint_axis("joint1", (0, 1)), od.ShapeError, "three finite numbers"),
        (lambda: design.inertial_parameter("link1", 10), od.ShapeError, "0 to 9"),
        (lambda: 3.0, od.ShapeError, "oc_dyn.design"),
    ],
)
def test_errors_of_parameters(make, error, text):
    with pytest.raises(error, match=text):
        od.sensitivity(robot("serial"), "inverse_dynamics", make())


def test_errors_of_sensitivity():
    r, p = robot("serial"), design.mass("link1")
    with pytest.raises(od.UnknownName, match="inverse_dynamics"):
        od.sensitivity(r, "mass_matrix", p)
    with pytest.raises(od.UnknownName, match="recursive_scalar"):
        od.sensitivity(r, "inverse_dynamics", p, method="taylor")
    with pytest.raises(od.UnknownName, match="external_wrenches"):
        od.sensitivity(r, "inverse_dynamics", p, frictions=True)
    with pytest.raises(od.OrderError, match="mimic"):
        od.sensitivity(robot("mimic"), "forward_dynamics", design.mass("link1"))
    locked = r.locked({"joint3": 0.2})
    with pytest.raises(od.ModelError, match="joint3 is locked"):
        od.sensitivity(locked, "inverse_dynamics", design.link_length("joint3"))
    f = od.sensitivity(r, "inverse_dynamics", [p, design.mass("link2")])
    assert f is od.sensitivity(r, "inverse_dynamics", [p, design.mass("link2")])
    with pytest.raises(od.ShapeError, match="port dq_dp"):
        f(q=np.zeros(4), dq_dp=np.zeros((4, 3)))
