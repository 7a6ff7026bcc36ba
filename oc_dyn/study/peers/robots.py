"""The robots of the study, here and in Pinocchio, and which of its coordinates ours are."""

import warnings

import casadi as ca
import numpy as np

from ...errors import ModelError, ModelWarning
from ...interop import to_pinocchio
from ...model.urdf import load_urdf
from ..example_robots import example_file
from ..second_order import humanoid

FILES = {  # of the wheel example-robot-data: file, floating base, held joints
    "panda": ("panda_description/urdf/panda.urdf", False, ("panda_finger_joint1", "panda_finger_joint2")),
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False, ()),
    "hyq": ("hyq_description/robots/hyq_no_sensors.urdf", True, ()),
    "talos": ("talos_data/robots/talos_reduced.urdf", True, ()),
}
HUMANOID = "humanoid"  # 36 degrees of freedom, made up
WIDE = 3.0  # rad, for joints without limits


def robot(name):
    """A new robot of this name; None if its file is missing."""
    if name == HUMANOID:
        return humanoid()
    path, floating, held = FILES[name]
    file = example_file(path)
    if file is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load_urdf(file, floating_base=floating, lock=dict.fromkeys(held, 0.0))


def pinocchio_model(name):
    """The same robot as a pinocchio.Model, which reads the file by itself; ImportError without Pinocchio."""
    import pinocchio as pin

    if name == HUMANOID:
        return built_model(humanoid())
    path, floating, held = FILES[name]
    root = (pin.JointModelFreeFlyer(),) if floating else ()
    model = pin.buildModelFromUrdf(str(example_file(path)), *root)
    return pin.buildReducedModel(model, [model.getJointId(j) for j in held], pin.neutral(model)) if held else model


def prescribed(r):
    """Prescribed joints of hybrid dynamics: all hinges of a floating base, every second one of a fixed base."""
    hinges = [j.name for j in r.joints if j.kind != "free"]
    return tuple(hinges if len(hinges) < len(r.joints) else hinges[::2])


def built_model(ours):
    """pinocchio.Model of a robot of free joints and hinges about x, y or z."""
    import pinocchio as pin

    model, number = pin.Model(), {0: 0}
    for b in ours.bodies:
        if b.joint.kind == "free":
            joint = pin.JointModelFreeFlyer()
        else:
            joint = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ)[int(np.argmax(b.joint.axis))]()
        placement = pin.SE3(b.rotation, b.translation)
        number[b.index] = model.addJoint(number[b.parent], joint, placement, b.joint.name)
        inertia = pin.Inertia(b.inertia.mass, b.inertia.com, b.inertia.tensor_com)
        model.appendBodyToJoint(number[b.index], inertia, pin.SE3.Identity())
    return model


def model_text(ours, model):
    """What the benchmark reads: joints and inertias of a pinocchio.Model, then the places of our coordinates there.

    Raises ModelError where more than the order of coordinates differs: the benchmark knows revolute, prismatic and free
    joints.
    """
    lines = [str(model.njoints - 1)]
    for i in range(1, model.njoints):
        joint, placement, inertia = model.joints[i], model.jointPlacements[i], model.inertias[i]
        limits = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
        lower, upper = limits if np.abs(limits).max() < 1e2 else (-WIDE, WIDE)
        numbers = [*placement.rotation.ravel(), *placement.translation, inertia.mass, *inertia.lever]
        numbers += [*inertia.inertia.ravel(), lower, upper, *_axis(joint)]
        words = [model.names[i].replace(" ", "_"), joint.shortname(), str(model.parents[i])]
        lines.append(" ".join([*words, *(repr(float(x)) for x in numbers)]))
    for places in coordinate_places(ours, model):
        lines.append(" ".join(map(str, places)))
    return "\n".join(lines) + "\n"


def coordinate_places(ours, model):
    """(places of our q, of our v) among those of a pinocchio.Model; ModelError if more than the order differs."""
    theirs = to_pinocchio(ours, model)
    x = ca.SX.sym("x", ours.nq)  # numbers would have to be quaternions of unit length
    q = ca.Function("q", [x], [theirs.q(x)])(1.0 + np.arange(ours.nq)).full().ravel()
    T = theirs.velocity_matrix(ours.random_configuration(0))
    v = np.argmax(T, axis=0)
    if sorted(q) != list(range(1, model.nq + 1)) or not np.array_equal(T, np.eye(model.nv)[:, v]):
        raise ModelError(f"study of peers, {ours.name}", ["its coordinates are not Pinocchio's in another order"])
    return np.argsort(q), v


def _axis(joint):
    return getattr(joint.extract() if hasattr(joint, "extract") else joint, "axis", (0.0, 0.0, 0.0))
