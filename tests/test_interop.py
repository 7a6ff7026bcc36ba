"""Coordinates, velocities, accelerations and forces of other libraries, against those libraries where installed."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest
from samples import rotation

import oc_dyn as od
from oc_dyn import interop, robots
from oc_dyn.errors import ModelError, ShapeError, UnknownName
from oc_dyn.lie import so3
from oc_dyn.model.builder import RobotBuilder
from oc_dyn.model.joints import KINDS
from oc_dyn.model.urdf import load_urdf


def make(kinds, parents, seed=0, floating_base=False, mimic=None):
    """Robot of generic placements and inertias whose joint k moves link k; planar joints keep the axis z."""
    rng = np.random.default_rng(seed)
    b = RobotBuilder("other")
    for k in range(len(kinds) + 1):
        second = rng.uniform(0.01, 0.04, 3)
        R = rotation(rng)
        tensor = R @ np.diag(second.sum() - second) @ R.T
        com = rng.uniform(-0.2, 0.2, 3)
        b.add_link(f"link{k}", mass=rng.uniform(0.5, 2), com=com, inertia=0.5 * (tensor + tensor.T))
    for k, kind in enumerate(kinds, start=1):
        options = {"xyz": rng.uniform(-0.4, 0.4, 3), "rotation": rotation(rng)}
        if kind in ("revolute", "prismatic", "helical"):
            options["axis"] = rng.normal(size=3)
        if kind == "helical":
            options["pitch"] = 0.13
        if mimic and k in mimic:
            options["mimic"] = mimic[k]
        b.add_joint(f"joint{k}", kind, f"link{parents[k - 1]}", f"link{k}", **options)
    return b.build(floating_base=floating_base)


def state(robot, seed=0):
    rng = np.random.default_rng(seed)
    return robot.random_configuration(seed), *rng.normal(size=(2, robot.nv))


def torque(robot, q, v, dv):
    return np.array(od.function(robot, "inverse_dynamics")(q=q, v=v, dv=dv)["tau"]).ravel()


def motion(robot, frame, q, v, dv):
    """Pose, velocity and acceleration (of the origin, and angular) of a frame in the root frame."""
    out = od.function(robot, "frame_pose", order=2, frame=frame)(q=q, v=v, dv=dv)
    R, dR, d2R = (np.array(out[k]) for k in ("R", "dR", "d2R"))
    W, dW = dR @ R.T, d2R @ R.T + dR @ dR.T  # skew matrices of the angular velocity and its derivative
    p, dp, d2p = (np.array(out[k]).ravel() for k in ("p", "dp", "d2p"))
    return R, p, np.array([W[2, 1], W[0, 2], W[1, 0]]), dp, np.array([dW[2, 1], dW[0, 2], dW[1, 0]]), d2p


def check_maps(robot, to, seed=0):
    """Round trips, equal power, velocity matrix, and symbols equal to numbers."""
    q, v, dv = state(robot, seed)
    tau = np.random.default_rng(seed + 50).normal(size=robot.nv)
    x = to.q(q)
    y, a, f = to.v(v, q), to.dv(dv, v, q), to.tau(tau, q)
    assert x.shape == (to.nq,)
    assert y.shape == a.shape == f.shape == (to.nv,)
    np.testing.assert_allclose(to.from_q(x), q, atol=1e-14)
    np.testing.assert_allclose(to.from_v(y, x), v, atol=1e-14)
    np.testing.assert_allclose(to.from_dv(a, y, x), dv, atol=1e-13)
    np.testing.assert_allclose(to.from_tau(f, x), tau, atol=1e-14)
    assert f @ y == pytest.approx(tau @ v, abs=1e-12)
    np.testing.assert_allclose(to.velocity_matrix(q) @ v, y, atol=1e-14)
    h = 1e-5  # their acceleration is the derivative of their velocity along the motion
    ahead, behind = (to.v(v + s * h * dv, robot.integrate(q, s * h * v)) for s in (1, -1))
    np.testing.assert_allclose((ahead - behind) / (2 * h), a, atol=1e-8)
    for kind in (ca.SX, ca.MX):
        Q, V, A, T = (kind.sym(n, k) for n, k in zip("QVAT", (robot.nq, robot.nv, robot.nv, robot.nv), strict=True))
        there = [to.q(Q), to.v(V, Q), to.dv(A, V, Q), to.tau(T, Q)]
        back = [to.from_q(there[0]), to.from_v(there[1], there[0]), to.from_dv(there[2], there[1], there[0])]
        F = ca.Function("F", [Q, V, A, T], [*there, *back, to.from_tau(there[3], there[0])])
        for got, expected in zip(F(q, v, dv, tau), (x, y, a, f, q, v, dv, tau), strict=True):
            np.testing.assert_allclose(np.array(got).ravel(), expected, atol=1e-13)


# -- Pinocchio ------------------------------------------------------------------------------------------------

PINOCCHIO = {
    "serial": lambda: make(["revolute", "prismatic", "revolute"], [0, 1, 2], seed=1),
    "tree": lambda: make(["revolute", "revolute", "prismatic", "revolute", "revolute"], [0, 1, 1, 3, 0], seed=2),
    "floating": lambda: make(["revolute", "revolute", "prismatic"], [0, 0, 1], seed=3, floating_base=True),
    "ball": lambda: make(["spherical", "revolute", "spherical"], [0, 1, 1], seed=4),
    "planar": lambda: make(["planar", "revolute", "planar"], [0, 1, 1], seed=5),
    "free": lambda: make(["revolute", "free", "revolute", "free"], [0, 1, 2, 0], seed=6),
    "continuous": lambda: make(["continuous", "revolute", "continuous"], [0, 1, 1], seed=7, floating_base=True),
    "helical": lambda: make(["helical", "revolute", "helical"], [0, 1, 1], seed=8),
    "mimic": lambda: make(
        ["revolute", "prismatic", "revolute", "revolute"],
        [0, 1, 2, 1],
        seed=9,
        mimic={2: ("joint1", -0.5, 0.1), 4: ("joint3", 1.5, 0.2)},
    ),
    "aerial": robots.aerial_manipulator,
}


def pinocchio_joint(pin, j):
    unaligned = {
        "revolute": pin.JointModelRevoluteUnaligned,
        "prismatic": pin.JointModelPrismaticUnaligned,
    }
    whole = {
        "spherical": pin.JointModelSpherical,
        "planar": pin.JointModelPlanar,
        "free": pin.JointModelFreeFlyer,
        "continuous": pin.JointModelRUBZ,
    }
    if j.kind == "helical":
        return pin.JointModelHelicalUnaligned(np.array(j.axis), j.pitch)
    return unaligned[j.kind](np.array(j.axis)) if j.kind in unaligned else whole[j.kind]()


def pinocchio_model(pin, robot, last_child_first=True):
    """The same robot there, with branches in another order."""
    model, numbers = pin.Model(), {0: 0}

    def grow(parent):
        below = [b for b in robot.bodies if b.parent == parent]
        for b in below[::-1] if last_child_first else below:
            place = pin.SE3(b.rotation, b.translation)
            i = model.addJoint(numbers[parent], pinocchio_joint(pin, b.joint), place, b.joint.name)
            inertia = pin.Inertia(b.inertia.mass, b.inertia.com, b.inertia.tensor_com)
            model.appendBodyToJoint(i, inertia, pin.SE3.Identity())
            numbers[b.index] = i
            grow(b.index)

    grow(0)
    model.gravity.linear = robot.gravity
    return model, model.createData(), numbers


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(PINOCCHIO))
@pytest.mark.parametrize("seed", [0, 1])
def test_pinocchio(name, seed):
    pin = pytest.importorskip("pinocchio")
    robot = PINOCCHIO[name]()
    model, data, numbers = pinocchio_model(pin, robot)
    to = interop.to_pinocchio(robot, model)
    assert (to.nq, to.nv) == (model.nq, model.nv)
    check_maps(robot, to, seed)
    q, v, dv = state(robot, seed)
    x, y, a = to.q(q), to.v(v), to.dv(dv)  # needs no q: body axes on either side
    pin.forwardKinematics(model, data, x, y, a)
    world = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for b in robot.bodies:
        i = numbers[b.index]
        R, p, w, dp, dw, d2p = motion(robot, b.name, q, v, dv)
        np.testing.assert_allclose(data.oMi[i].rotation, R, atol=1e-12)
        np.testing.assert_allclose(data.oMi[i].translation, p, atol=1e-12)
        twist, rate = pin.getVelocity(model, data, i, world), pin.getClassicalAcceleration(model, data, i, world)
        np.testing.assert_allclose(np.concatenate([twist.angular, twist.linear]), [*w, *dp], atol=1e-11)
        np.testing.assert_allclose(np.concatenate([rate.angular, rate.linear]), [*dw, *d2p], atol=1e-10)
        ours = interop.linear_first(np.array([*w, *dp]))
        np.testing.assert_allclose(np.array(ours).ravel(), twist.vector, atol=1e-11)
    theirs = pin.rnea(model, data, x, y, a)
    np.testing.assert_allclose(to.from_tau(theirs), torque(robot, q, v, dv), rtol=1e-10, atol=1e-10)
    if not robot.mimics:
        np.testing.assert_allclose(to.tau(torque(robot, q, v, dv)), theirs, rtol=1e-10, atol=1e-10)
        M = np.array(od.function(robot, "mass_matrix")(q=q)["M"])
        T = to.velocity_matrix(q)
        theirs = pin.crba(model, data, x)
        theirs = np.triu(theirs) + np.triu(theirs, 1).T
        np.testing.assert_allclose(T @ M @ T.T, theirs, rtol=1e-10, atol=1e-10)


def test_pinocchio_integrates_alike():
    pin = pytest.importorskip("pinocchio")
    robot = PINOCCHIO["free"]()
    model, _, _ = pinocchio_model(pin, robot)
    to = interop.to_pinocchio(robot, model)
    q, v, _ = state(robot, 3)
    there = to.from_q(pin.integrate(model, to.q(q), to.v(v)))
    np.testing.assert_allclose(robot.difference(there, robot.integrate(q, v)), np.zeros(robot.nv), atol=1e-13)


def test_pinocchio_matches_by_name_and_says_what_is_missing():
    pin = pytest.importorskip("pinocchio")
    robot = robots.planar_2r()
    model, _, _ = pinocchio_model(pin, robot)
    with pytest.raises(ModelError) as caught:
        interop.to_pinocchio(robot.locked({"elbow": 0.0}), model)
    assert "'elbow' of the model" in str(caught.value)
    assert "lock it" in str(caught.value)
    small, _, _ = pinocchio_model(pin, robot.locked({"elbow": 0.0}))
    with pytest.raises(ModelError, match="'elbow' of the robot is not in the model"):
        interop.to_pinocchio(robot, small)
    b = RobotBuilder("other")
    b.add_link("base")
    b.add_body("upper", "prismatic", "base", joint="shoulder", mass=1)
    b.add_body("lower", "revolute", "upper", joint="elbow", mass=1)
    with pytest.raises(ModelError, match="'shoulder' is prismatic here and 'turn' there"):
        interop.to_pinocchio(b.build(), model)
    renamed = pinocchio_model(pin, make(["revolute", "revolute"], [0, 1]))[0]
    to = interop.to_pinocchio(robot, renamed, names={"shoulder": "joint2", "elbow": "joint1"})
    np.testing.assert_array_equal(to.q([1.0, 2.0]), [2.0, 1.0])
    with pytest.raises(UnknownName, match="sholder"):
        interop.to_pinocchio(robot, renamed, names={"sholder": "joint2"})


def test_pinocchio_refuses_what_has_no_equal():
    pin = pytest.importorskip("pinocchio")
    model = pin.Model()
    model.addJoint(0, pin.JointModelSphericalZYX(), pin.SE3.Identity(), "joint1")
    with pytest.raises(ModelError, match="'joint1' is spherical here and 'SphericalZYX' there"):
        interop.to_pinocchio(make(["spherical"], [0]), model)
    b = RobotBuilder("tilted")
    b.add_link("base")
    b.add_body("sledge", "planar", "base", joint="joint1", axis=(0, 1, 0), mass=1)
    model = pin.Model()
    model.addJoint(0, pin.JointModelPlanar(), pin.SE3.Identity(), "joint1")
    with pytest.raises(ModelError, match="only planar joints with axis"):
        interop.to_pinocchio(b.build(), model)


def test_pinocchio_mimic_joints_without_coordinates():
    pin = pytest.importorskip("pinocchio")
    tensor = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
    urdf = f"""<robot name="jaws"><link name="palm"/>
      <link name="a"><inertial><mass value="0.2"/>{tensor}</inertial></link>
      <link name="c"><inertial><mass value="0.3"/>{tensor}</inertial></link>
      <joint name="ja" type="prismatic"><parent link="palm"/><child link="a"/><axis xyz="0 1 0"/>
        <limit lower="0" upper="1" effort="1" velocity="1"/></joint>
      <joint name="jc" type="prismatic"><parent link="palm"/><child link="c"/><axis xyz="0 1 0"/>
        <limit lower="0" upper="1" effort="1" velocity="1"/><mimic joint="ja" multiplier="-0.5" offset="0.01"/></joint>
      </robot>"""
    robot = load_urdf(urdf)
    try:
        honoured = pin.buildModelFromXML(urdf, mimic=True)
    except TypeError:
        pytest.skip("this version has no mimic joints")
    for model in (honoured, pin.buildModelFromXML(urdf)):
        to = interop.to_pinocchio(robot, model)
        np.testing.assert_allclose(to.q([0.3]), [0.3, -0.14][: model.nq])
        data = model.createData()
        tau = pin.rnea(model, data, to.q([0.3]), to.v([0.0]), to.dv([2.0]))
        np.testing.assert_allclose(to.from_tau(tau), [2.0 * 0.275], atol=1e-12)


# -- MuJoCo ---------------------------------------------------------------------------------------------------

MUJOCO = {
    "tree": lambda: make(["revolute", "prismatic", "revolute", "revolute"], [0, 1, 1, 0], seed=11),
    "ball": lambda: make(["spherical", "revolute", "spherical"], [0, 1, 1], seed=12),
    "floating": lambda: make(["revolute", "spherical", "prismatic"], [0, 0, 1], seed=13, floating_base=True),
    "placed": lambda: make(["free", "revolute"], [0, 1], seed=14),  # a free body that rests away from the origin
}


def mjcf(robot, reference=0.0):
    """The robot as MJCF, its turning and sliding joints counted from `reference`."""
    kinds = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}

    def numbers(x):
        return " ".join(f"{float(v):.17g}" for v in np.ravel(x))

    def grow(parent):
        text = ""
        for b in robot.bodies:
            if b.parent != parent:
                continue
            T = b.inertia.tensor_com
            tensor = (T[0, 0], T[1, 1], T[2, 2], T[0, 1], T[0, 2], T[1, 2])
            quaternion = interop.rotation_to_quaternion(b.rotation)
            text += f'<body name="{b.name}" pos="{numbers(b.translation)}" quat="{numbers(quaternion)}">'
            text += f'<inertial pos="{numbers(b.inertia.com)}" mass="{b.inertia.mass:.17g}" '
            text += f'fullinertia="{numbers(tensor)}"/>'
            axis = f'axis="{numbers(b.joint.axis)}" ref="{reference}"' if b.joint.nq == 1 else ""
            text += f'<joint name="{b.joint.name}" type="{kinds[b.joint.kind]}" {axis}/>{grow(b.index)}</body>'
        return text

    gravity = numbers(robot.gravity)
    return f'<mujoco><compiler angle="radian"/><option gravity="{gravity}"/><worldbody>{grow(0)}</worldbody></mujoco>'


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(MUJOCO))
@pytest.mark.parametrize("reference", [0.0, 0.3])
def test_mujoco(name, reference):
    mujoco = pytest.importorskip("mujoco")
    robot = MUJOCO[name]()
    model = mujoco.MjModel.from_xml_string(mjcf(robot, reference))
    data = mujoco.MjData(model)
    to = interop.to_mujoco(robot, model)
    assert (to.nq, to.nv) == (model.nq, model.nv)
    check_maps(robot, to)
    for seed in range(2):
        q, v, dv = state(robot, seed)
        data.qpos[:], data.qvel[:], data.qacc[:] = to.q(q), to.v(v, q), to.dv(dv, v, q)
        mujoco.mj_inverse(model, data)
        for b in robot.bodies:
            R, p, w, dp, _, _ = motion(robot, b.name, q, v, dv)
            np.testing.assert_allclose(data.body(b.name).xmat.reshape(3, 3), R, atol=1e-12)
            np.testing.assert_allclose(data.body(b.name).xpos, p, atol=1e-12)
            twist = np.zeros(6)
            mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, data.body(b.name).id, twist, 0)
            np.testing.assert_allclose(twist, [*w, *dp], atol=1e-11)
        expected = torque(robot, q, v, dv)
        np.testing.assert_allclose(to.from_tau(data.qfrc_inverse, data.qpos), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(to.tau(expected, q), data.qfrc_inverse, rtol=1e-9, atol=1e-9)


# -- Drake ----------------------------------------------------------------------------------------------------

DRAKE = {
    "tree": lambda: make(["revolute", "prismatic", "revolute", "helical"], [0, 1, 1, 0], seed=21),
    "planar": lambda: make(["planar", "revolute", "planar"], [0, 1, 1], seed=22),
    "floating": lambda: make(["revolute", "planar", "prismatic"], [0, 0, 1], seed=23, floating_base=True),
    "placed": lambda: make(["free", "revolute"], [0, 1], seed=24),
}


def drake_plant(robot):
    from pydrake.math import RigidTransform, RotationMatrix
    from pydrake.multibody import tree
    from pydrake.multibody.plant import MultibodyPlant

    plant = MultibodyPlant(0.0)
    plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
    there = {0: plant.world_body()}
    for b in robot.bodies:
        T, c, m = b.inertia.tensor, b.inertia.com, b.inertia.mass
        unit = tree.UnitInertia(*(np.array([T[0, 0], T[1, 1], T[2, 2], T[0, 1], T[0, 2], T[1, 2]]) / m))
        there[b.index] = plant.AddRigidBody(b.name, tree.SpatialInertia(m, c, unit))
        child = there[b.index].body_frame()
        place = RigidTransform(RotationMatrix(b.rotation), b.translation)
        rest = tree.FixedOffsetFrame(f"rest{b.index}", there[b.parent].body_frame(), place)
        rest = plant.AddFrame(rest)
        j = b.joint
        kinds = {"revolute": tree.RevoluteJoint, "prismatic": tree.PrismaticJoint}
        if j.kind in kinds:
            plant.AddJoint(kinds[j.kind](j.name, rest, child, j.axis))
        elif j.kind == "helical":
            plant.AddJoint(tree.ScrewJoint(j.name, rest, child, j.axis, j.pitch * 2 * np.pi, 0.0))
        elif j.kind == "planar":
            plant.AddJoint(tree.PlanarJoint(j.name, rest, child))
        elif j.name != "root_joint":  # the root is left to float by itself, named after its body
            plant.AddJoint(tree.QuaternionFloatingJoint(j.name, rest, child))
    plant.Finalize()
    return plant


@pytest.mark.parametrize("name", list(DRAKE))
def test_drake(name):
    pytest.importorskip("pydrake")
    from pydrake.multibody.tree import MultibodyForces

    robot = DRAKE[name]()
    plant = drake_plant(robot)
    to = interop.to_drake(robot, plant)
    assert (to.nq, to.nv) == (plant.num_positions(), plant.num_velocities())
    check_maps(robot, to)
    context = plant.CreateDefaultContext()
    for seed in range(2):
        q, v, dv = state(robot, seed)
        plant.SetPositions(context, to.q(q))
        plant.SetVelocities(context, to.v(v, q))
        for b in robot.bodies:
            R, p, w, dp, _, _ = motion(robot, b.name, q, v, dv)
            body = plant.GetBodyByName(b.name)
            C = plant.EvalBodyPoseInWorld(context, body)
            np.testing.assert_allclose(C.rotation().matrix(), R, atol=1e-12)
            np.testing.assert_allclose(C.translation(), p, atol=1e-12)
            twist = plant.EvalBodySpatialVelocityInWorld(context, body)
            twist = np.concatenate([twist.rotational(), twist.translational()])
            np.testing.assert_allclose(twist, [*w, *dp], atol=1e-11)
        weight = MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, weight)
        tau = plant.CalcInverseDynamics(context, to.dv(dv, v, q), weight)
        expected = torque(robot, q, v, dv)
        np.testing.assert_allclose(to.from_tau(tau, to.q(q)), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(to.tau(expected, q), tau, rtol=1e-9, atol=1e-9)


# -- without any of them --------------------------------------------------------------------------------------


def drake_like():
    """As much of a plant as is read: a base, a turning joint, a welded one and a planar one."""

    def joint(name, kind, q, v, nq):
        values = {"name": name, "type_name": kind, "position_start": q, "velocity_start": v, "num_positions": nq}
        return SimpleNamespace(**{key: lambda value=value: value for key, value in values.items()})

    joints = [
        joint("joint1", "revolute", 7, 6, 1),
        joint("weld", "weld", 8, 7, 0),
        joint("joint2", "planar", 8, 7, 3),
        joint("link0", "quaternion_floating", 0, 0, 7),
    ]
    return SimpleNamespace(
        GetJointIndices=lambda: range(4),
        get_joint=joints.__getitem__,
        num_positions=lambda: 11,
        num_velocities=lambda: 10,
    )


def mujoco_like():
    """As much of an MjModel as is read: a ball, an unnamed base and a hinge that rests at 0.3 rad."""
    return SimpleNamespace(
        njnt=3,
        nq=12,
        nv=10,
        joint=lambda i: SimpleNamespace(name=("joint2", "", "joint1")[i]),
        jnt_type=[1, 0, 3],
        jnt_qposadr=[0, 4, 11],
        jnt_dofadr=[0, 3, 9],
        qpos0=[1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0.3],
    )


def test_maps_of_a_floating_base_in_world_axes():
    robot = make(["revolute", "planar"], [0, 0], seed=31, floating_base=True)
    to = interop.to_drake(robot, drake_like())
    check_maps(robot, to)
    s = np.sqrt(0.5)
    q = np.array([s, 0, 0, s, 1, 2, 3, 0.4, 0.0, 5, 6])  # body x is world y
    v = np.array([0, 0, 1, 1, 0, 0, 0.5, 0, 7, 8])  # turns about z at 1 rad/s, moves along body x at 1 m/s
    np.testing.assert_allclose(to.q(q), [s, 0, 0, s, 1, 2, 3, 0.4, 5, 6, 0], atol=1e-15)
    np.testing.assert_allclose(to.v(v, q), [0, 0, 1, 0, 1, 0, 0.5, 7, 8, 0], atol=1e-15)
    # at constant body twist the velocity turns towards -x: on a circle to the left
    np.testing.assert_allclose(to.dv(np.zeros(10), v, q)[:6], [0, 0, 0, -1, 0, 0], atol=1e-15)


def test_maps_of_a_floating_base_in_mixed_axes():
    robot = make(["revolute", "spherical"], [0, 0], seed=32, floating_base=True)
    to = interop.to_mujoco(robot, mujoco_like())
    check_maps(robot, to)
    s = np.sqrt(0.5)
    q = np.array([s, 0, 0, s, 1, 2, 3, 0.4, 0, 1, 0, 0])  # body x is world y
    v = np.array([1, 0, 1, 1, 0, 0, 0.5, 7, 8, 9])
    np.testing.assert_allclose(to.q(q), [0, 1, 0, 0, 1, 2, 3, s, 0, 0, s, 0.7], atol=1e-15)
    np.testing.assert_allclose(to.v(v, q), [7, 8, 9, 0, 1, 0, 1, 0, 1, 0.5], atol=1e-15)
    np.testing.assert_allclose(to.dv(np.zeros(10), v, q)[3:9], [-1, 0, 0, 0, 0, 0], atol=1e-15)


def test_what_is_missing_is_named():
    robot = make(["revolute", "planar"], [0, 0], seed=31, floating_base=True)
    to = interop.to_drake(robot, drake_like())
    q, v, _ = state(robot)
    with pytest.raises(ShapeError, match="to_drake: q is missing"):
        to.v(v)
    with pytest.raises(ShapeError, match="to_drake: v is missing"):
        to.dv(v, q=q)
    with pytest.raises(ShapeError, match="tau: got 3 entries, expected 10"):
        to.tau(np.zeros(3), q)
    with pytest.raises(ShapeError, match="q: got 10 entries, expected 11"):
        to.from_q(np.zeros(10))


# -- orders and angles ----------------------------------------------------------------------------------------


def test_quaternion_orders():
    np.testing.assert_array_equal(np.array(interop.xyzw([1, 2, 3, 4])).ravel(), [2, 3, 4, 1])
    np.testing.assert_array_equal(np.array(interop.wxyz(interop.xyzw([1, 2, 3, 4]))).ravel(), [1, 2, 3, 4])
    x = ca.SX.sym("x", 6, 3)
    assert ca.is_equal(interop.linear_first(interop.linear_first(x)), x, 2)


def test_quaternion_of_any_rotation():
    rng = np.random.default_rng(0)
    turns = [*(rotation(rng) for _ in range(20)), np.eye(3), np.diag([1.0, -1, -1]), np.diag([-1.0, -1, 1])]
    for R in turns:
        Q = interop.rotation_to_quaternion(R)
        assert np.linalg.norm(Q) == pytest.approx(1)
        np.testing.assert_allclose(np.array(so3.quat_to_rot(Q)), R, atol=1e-14)


def test_roll_pitch_yaw():
    rng = np.random.default_rng(1)
    h = 1e-6
    for _ in range(5):
        rpy, rate = rng.uniform(-1.4, 1.4, 3), rng.normal(size=3)
        Q = np.array(interop.rpy_to_quaternion(rpy)).ravel()
        np.testing.assert_allclose(np.array(so3.quat_to_rot(Q)), np.array(so3.rpy(*rpy)), atol=1e-14)
        np.testing.assert_allclose(np.array(interop.quaternion_to_rpy(Q)).ravel(), rpy, atol=1e-14)
        w = interop.rpy_rate_matrix(rpy) @ rate
        np.testing.assert_allclose(np.array(interop.rpy_rate(rpy, w)).ravel(), rate, atol=1e-13)
        slope = sum(s * np.array(interop.rpy_to_quaternion(rpy + s * h * rate)).ravel() for s in (1, -1)) / (2 * h)
        np.testing.assert_allclose(np.array(so3.quat_rate(Q, w)).ravel(), slope, atol=1e-9)


@pytest.mark.parametrize("shape", [(2, 6), (6, 2, 2), (5,), (1, 6)])
def test_linear_first_takes_columns(shape):
    with pytest.raises(ShapeError, match="linear_first: got shape"):
        interop.linear_first(np.ones(shape))


@pytest.mark.parametrize("convert", ["xyzw", "wxyz", "rpy_to_quaternion", "rpy_rate_matrix"])
def test_orders_and_angles_of_another_size_are_refused(convert):
    with pytest.raises(ShapeError, match=f"{convert}: .* got 5 entries"):
        getattr(interop, convert)([1, 0, 0, 0, 0])


def test_linear_first_of_numbers():
    x = np.arange(12.0).reshape(6, 2)
    np.testing.assert_array_equal(np.array(interop.linear_first(x)), np.roll(x, 3, axis=0))
    np.testing.assert_array_equal(np.array(interop.linear_first(list(range(6)))).ravel(), [3, 4, 5, 0, 1, 2])


class _One:
    """A Pinocchio-like model of one joint."""

    njoints, nq, nv, names = 2, 1, 1, ["universe", "turn"]
    joints = (None, SimpleNamespace(nq=1, idx_q=0, idx_v=0, shortname=lambda: "JointModelRZ"))


@pytest.mark.parametrize("kind", [k for k in KINDS if k not in interop._FITS])
def test_kinds_without_counterpart_are_named(kind):
    b = RobotBuilder("lonely")
    b.add_link("base")
    pose = {"transform": lambda q: (so3.rot_z(q[0]), ca.DM.zeros(3)), "coordinates": 1} if kind == "transform" else {}
    b.add_body("tip", kind, "base", joint="turn", mass=1, inertia=np.eye(3), **pose)
    with pytest.raises(ModelError, match=f"joint 'turn' is {kind}, which cannot be converted"):
        interop.to_pinocchio(b.build(), _One)


@pytest.mark.parametrize("names", ["abc", ["a"], 3])
def test_names_are_a_dict(names):
    b = RobotBuilder("single")
    b.add_link("base")
    b.add_body("tip", "revolute", "base", joint="turn", mass=1, inertia=np.eye(3))
    with pytest.raises(ShapeError, match="to_pinocchio: names"):
        interop.to_pinocchio(b.build(), _One, names=names)
