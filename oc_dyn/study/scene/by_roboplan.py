"""Motions of RoboPlan among the shapes of a task: RRT-Connect, its corners cut, timed by toppra, all in C++.

RoboPlan keeps no clearance: shapes are grown by half of it each. Capsules are three shapes, a half-space is a large
box. toppra has limits of velocity and acceleration there, none of torque.
"""

import tempfile
from functools import lru_cache
from itertools import combinations, product
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from ...planning.limits import Limits
from ...scene.shapes import Box, Capsule, Cylinder, HalfSpace, Sphere

NAMES = ("roboplan-core", "roboplan-rrt", "roboplan-toppra")
_LARGE = 4.0  # [m] half-edge of a box in place of a half-space
_STEP = 0.05  # [rad] between configurations that are looked at
_NODES, _SECONDS = 100_000, 10.0


def motion(around, start, goal):
    """(times (K,), q (K, n)) of a motion from start to goal; None where no way is found."""
    from roboplan import core, rrt, toppra

    scene, names = _scene(around)
    options = rrt.RRTOptions(
        max_nodes=_NODES, max_planning_time=_SECONDS, rrt_connect=True, collision_check_step_size=_STEP
    )
    planner = rrt.RRT(scene, options)
    planner.setRngSeed(1)
    try:
        path = planner.plan(*(core.JointConfiguration(list(names), x) for x in (start, goal)))
        path = core.PathShortcutter(scene, core.PathShortcuttingOptions(max_step_size=_STEP)).shortcut(path)
        settings = toppra.TOPPRAOptions(dt=0.002, mode=toppra.SplineFittingMode.LinearBlend, max_blend_deviation=0.1)
        found = toppra.PathParameterizerTOPPRA(scene).generate(path, settings)
    except RuntimeError:
        return None
    return np.array(found.times), np.array(found.positions)


@lru_cache
def _scene(around):
    """(its Scene, names of the joints) of Obstacles."""
    from roboplan import core

    robot, half = around.robot, around.clearance / 2
    scene = core.Scene("task", core.loadUrdfSceneDescriptionFromXml(_urdf(around, half)))
    names = [j.name for j in robot.joints]
    limits = Limits.of(robot)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "limits.yaml")
        rows = [f"  {name}:\n    max_acceleration: [{dv}]" for name, dv in zip(names, limits.larger("dv"), strict=True)]
        file.write_text("joint_limits:\n" + "\n".join(rows) + "\n")
        scene.importJointLimitsFromConfig(core.loadJointLimitsConfig(file))
    for item in around.scene.items:
        if item.link is None:
            for k, (shape, C) in enumerate(_parts(item, half)):
                _add(scene, core, f"{item.name} {k}", shape, C)
    scene.setCollisions(_left_out(around, half), False)
    return scene, names


def _left_out(around, half):
    """[(name, name)] of links and things in the world that are not looked at: what does not count in the scene."""
    items = around.scene.items
    things = {x.name: [f"{x.name} {k}" for k in range(len(_parts(x, half)))] for x in items if x.link is None}
    known = {x.name: [x.link] if x.link is not None else things[x.name] for x in items}
    counted = {frozenset(x) for pair in around.scene.pairs for x in product(*(known[name] for name in pair))}
    bodies = list(dict.fromkeys(x for own in known.values() for x in own))
    return [pair for pair in combinations(bodies, 2) if frozenset(pair) not in counted]


def _add(scene, core, name, shape, C):
    color = np.array([0.5, 0.5, 0.5, 1.0])
    C = np.asfortranarray(C)
    if isinstance(shape, Box):
        scene.addBoxGeometry(name, "universe", core.Box(shape.x, shape.y, shape.z), C, color)
    elif isinstance(shape, Sphere):
        scene.addSphereGeometry(name, "universe", core.Sphere(shape.radius), C, color)
    else:
        scene.addCylinderGeometry(name, "universe", core.Cylinder(shape.radius, shape.length), C, color)


def _parts(item, half):
    """[(shape, matrix)]: the shape of an item grown by `half` [m], in shapes that RoboPlan has."""
    s, C = item.shape, np.array(item.matrix)
    if isinstance(s, HalfSpace):
        z = np.array(s.normal)
        x = np.cross(z, [1, 0, 0] if abs(z[0]) < 0.6 else [0, 1, 0])
        x = x / np.linalg.norm(x)
        D = np.eye(4)
        D[:3, :3] = np.column_stack([x, np.cross(z, x), z])
        D[:3, 3] = (s.offset + half - _LARGE) * z
        return [(Box(2 * _LARGE, 2 * _LARGE, 2 * _LARGE), C @ D)]
    if isinstance(s, Box):
        return [(Box(s.x + 2 * half, s.y + 2 * half, s.z + 2 * half), C)]
    if isinstance(s, Cylinder):
        return [(Cylinder(s.radius + half, s.length + 2 * half), C)]
    if isinstance(s, Sphere):
        return [(Sphere(s.radius + half), C)]
    assert isinstance(s, Capsule)
    ends = []
    for sign in (1, -1):
        D = np.eye(4)
        D[2, 3] = sign * s.length / 2
        ends.append((Sphere(s.radius + half), C @ D))
    return [(Cylinder(s.radius + half, s.length), C), *ends]


def _urdf(around, half):
    """Text of the robot with the shapes on its links, grown by `half` [m]."""
    robot, parts = around.robot, ['<robot name="task">']
    links = [robot.root, *(b.name for b in robot.bodies)]
    for link in links:
        parts.append(f"<link name={quoteattr(link)}>")
        for item in around.scene.items:
            if item.link == link:
                for shape, C in _parts(item, half):
                    parts.append(f"<collision>{_origin(C)}<geometry>{_geometry(shape)}</geometry></collision>")
        parts.append("</link>")
    names = dict(enumerate(links))
    for b in robot.bodies:
        j, C = b.joint, np.eye(4)
        C[:3, :3], C[:3, 3] = b.rotation, b.translation
        axis = " ".join(map(repr, map(float, j.axis)))
        bounds = f'lower="{j.lower}" upper="{j.upper}" velocity="{j.velocity}" effort="{j.effort}"'
        parts.append(
            f'<joint name={quoteattr(j.name)} type="revolute"><parent link={quoteattr(names[b.parent])}/>'
            f'<child link={quoteattr(b.name)}/>{_origin(C)}<axis xyz="{axis}"/><limit {bounds}/></joint>'
        )
    return "\n".join([*parts, "</robot>"])


def _geometry(shape):
    if isinstance(shape, Box):
        return f'<box size="{shape.x} {shape.y} {shape.z}"/>'
    if isinstance(shape, Sphere):
        return f'<sphere radius="{shape.radius}"/>'
    return f'<cylinder radius="{shape.radius}" length="{shape.length}"/>'


def _origin(C):
    R = C[:3, :3]
    rpy = np.arctan2(R[2, 1], R[2, 2]), np.arctan2(-R[2, 0], np.hypot(R[2, 1], R[2, 2])), np.arctan2(R[1, 0], R[0, 0])
    told = [" ".join(map(repr, map(float, x))) for x in (C[:3, 3], rpy)]
    return f'<origin xyz="{told[0]}" rpy="{told[1]}"/>'
