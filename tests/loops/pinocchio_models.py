"""Robots with loops and contacts as models of Pinocchio: trees of joints that both have, and rigid constraints.

Loops are constraints of Pinocchio between the same two frames, reference LOCAL: rows in the axes of frame a, of b
relative to a here, of a relative to b there, so forces have the opposite sign. Contacts are constraints to the ground,
reference LOCAL_WORLD_ALIGNED: rows in root axes; of a surface the turns stand first here and last there.
"""

import numpy as np
import pinocchio as pin

KINDS = {"point": "CONTACT_3D", "surface": "CONTACT_6D", "position": "CONTACT_3D", "weld": "CONTACT_6D"}


def model_of(tree):
    """(Pinocchio's model of a tree, {body: number of its joint there})."""
    model, number = pin.Model(), {0: 0}
    model.gravity.linear = np.array(tree.gravity)
    for b in tree.bodies:
        place = pin.SE3(np.array(b.rotation), np.array(b.translation))
        k = model.addJoint(number[b.parent], _joint(b.joint), place, b.joint.name)
        model.appendBodyToJoint(k, _inertia(b.inertia), pin.SE3.Identity())
        number[b.index] = k
        armature = np.array(model.armature)
        armature[model.idx_vs[k] : model.idx_vs[k] + b.joint.nv] = b.joint.armature
        model.armature = armature
    return model, number


def constraints(robot, contacts, model, number):
    """Rigid constraints of the loops and contacts of a robot; hinges of planar mechanisms as points that are held."""
    tree, out = getattr(robot, "tree", robot), []
    for x in getattr(robot, "loops", ()):
        kind = getattr(pin.ContactType, KINDS["position" if x.kind == "revolute" else x.kind])
        frames = [
            (number[x.bodies[0]], pin.SE3(np.array(x.rotation_a), np.array(x.translation_a))),
            (number[x.bodies[1]], pin.SE3(np.array(x.rotation_b), np.array(x.translation_b))),
        ]
        out.append(pin.RigidConstraintModel(kind, model, *frames[0], *frames[1], pin.LOCAL))
    for name, kind in contacts.items():
        f = tree.frame(name)
        place = pin.SE3(np.array(f.rotation), np.array(f.translation))
        kind = getattr(pin.ContactType, KINDS[kind])
        out.append(pin.RigidConstraintModel(kind, model, number[f.body], place, pin.LOCAL_WORLD_ALIGNED))
    return out


def rows(robot, contacts):
    """(count, count) matrix that turns their rows of the constraints into ours."""
    blocks = [-np.eye(6 if x.kind == "weld" else 3) for x in getattr(robot, "loops", ())]
    for kind in contacts.values():
        blocks.append(np.eye(3) if kind == "point" else np.roll(np.eye(6), 3, axis=0))
    out = np.zeros([sum(len(x) for x in blocks)] * 2)
    at = 0
    for x in blocks:
        out[at : at + len(x), at : at + len(x)] = x
        at += len(x)
    return out


def _joint(joint):
    if joint.kind in ("revolute", "continuous"):
        return pin.JointModelRevoluteUnaligned(*joint.axis)
    if joint.kind == "prismatic":
        return pin.JointModelPrismaticUnaligned(*joint.axis)
    return {"free": pin.JointModelFreeFlyer, "spherical": pin.JointModelSpherical}[joint.kind]()


def _inertia(x):
    return pin.Inertia(x.mass, np.array(x.com), np.array(x.tensor_com))
