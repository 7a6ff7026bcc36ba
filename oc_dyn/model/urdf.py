"""Robots from URDF files."""

from __future__ import annotations

import ast
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..errors import ModelError, ModelWarning
from ..lie import so3
from ..lie.so3 import axis_frame
from ..types import Array, Numbers
from .canonical import CLEAN, almost_quarter_turns
from .check import definite_problems, joint_problems, motion_doubts, tree_problems
from .inertia import Inertia
from .loop_joints import KINDS as DIRECTIONS
from .loop_joints import Loop, coupling
from .loops import close_tree
from .robot import Joint, Mimic, Robot, assemble, checked_tolerance
from .turned import turned
from .urdf_parsed import parsed
from .xml_clean import Finding, Findings, clean
from .xml_collisions import shapes
from .xml_loops import Declared, declared_loops
from .xml_read import folder_of, read_xml

_KIND = {"floating": "free"}  # all other types are called as in joints.py
_SUBJECT = re.compile(r"""(link|joint) ('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


def load_urdf(
    path_or_xml: str | bytes | os.PathLike[str],
    *,
    floating_base: bool = False,
    lock: Mapping[str, Numbers] | None = None,
    gravity: Numbers = (0.0, 0.0, -9.81),
    strict: bool = False,
    snap_angles: float = CLEAN,
    check_inertia: bool = True,
    root: str | None = None,
    start: Mapping[str, Numbers] | None = None,
) -> Robot:
    """Robot of a URDF file; sensors, transmissions and unknown tags are not looked at, and no file of a mesh is opened.

    path_or_xml: path (str, Path) or XML itself (str, bytes), in any encoding it declares.
    floating_base: puts a free joint above the root link; the root's mass then counts.
    lock: {joint: value [rad or m]} holds joints; a planar or floating one takes its coordinates.
    gravity: (3,) [m/s^2] in the root link's frame. strict: what is doubtful is an error.
    snap_angles: rotation entries this close to 0 or 1 are taken as exact, such as 1e-5 for a file that writes 1.5708
    for a quarter turn; fewer instructions, results that differ from the file's by as much. 0 keeps all numbers as
    they are.
    check_inertia: False accepts inertias that no real body has, negative masses included, and mentions them in
    `robot.report` only.
    start: {joint: value}, from which a robot with loops is assembled, zero for others.

    root: name of another link that is to be the root: the one that is fixed, or floats. Joints between it and the
    root of the file are turned around, axis included, so that their coordinates, limits and torques stay; bodies that
    they move have their frames at the joint and are named after it, links keep their frames. Gravity is in its frame.

    Loops and couplings that URDF+ adds, <loop>, <coupling> and independent="true" of <joint>, make a LoopRobot.
    Links become frames; what hangs on fixed or locked joints is lumped. Joints of type floating are free joints,
    see joints.py for coordinates. A mimic joint has no coordinate of its own. Limits [rad or m, /s, Nm or N] that
    the file does not give are infinite, a lone lower or upper makes the other 0; acceleration, jerk, effort_rate on
    <limit> and armature on <dynamics> are read, too. A missing axis is x. `robot.collisions` are the shapes of
    <collision>, `robot.visuals` those of <visual>, which od.view shows; those that cannot be used are left out.
    `robot.report` tells all that was assumed or looks wrong.

    Raises FileNotFoundError; ModelError with every problem found, its line, element and attribute, and for links whose
    negative principal moments make the mass matrix indefinite; UnknownName for a joint to lock and a root that are not
    there. Warns (ModelWarning) of missing limits and limits of 0, of joints that move no inertia, of inertias that no
    body has, of an inertia without mass or a mass without inertia, of collision shapes that are left out, and of tags
    and attributes that look misspelt.
    Source: URDF specification (wiki.ros.org/urdf/XML), version 1.2 included.
    """
    snap_angles = checked_tolerance("load_urdf: snap_angles", snap_angles)
    source, stem, tree, offset = read_xml(path_or_xml)
    found = Findings(strict, offset, check_inertia)
    declared = declared_loops(tree, found)
    name, links, joints, lines = _parts(source, stem, tree, found)
    seen, solid = shapes(tree, found, "visual"), shapes(tree, found)
    if root is not None:
        links, joints = turned(source, links, joints, root)
    robot = assemble(
        name, links, joints, gravity=gravity, floating_base=floating_base, lock=lock, source=source, collisions=solid,
        report=[_sentence(p) for p in sorted(found.report, key=lambda p: p[0] or 0)],
    )  # fmt: skip
    wrong = definite_problems(robot) if check_inertia else []
    if wrong:
        raise ModelError(source, [_sentence(_located(text, lines)) for text in wrong])
    doubts = [[_located(text, lines) for text in some] for some in motion_doubts(robot)]
    if strict and any(doubts):
        raise ModelError(source, [_sentence(p) for some in doubts for p in some])
    robot = replace(robot, report=(*robot.report, *(_sentence(p) for some in doubts for p in some)))
    near = almost_quarter_turns(robot)
    if near and snap_angles <= CLEAN:
        hint = f"angles written with few digits at {', '.join(near)}; snap_angles=1e-5 would take them as exact"
        robot = replace(robot, report=(*robot.report, hint))
    robot = replace(robot, snap_angles=snap_angles, folder=folder_of(path_or_xml), visuals=seen)
    told = [found.unphysical if check_inertia else [], found.shapes, *doubts]
    for p in [*found.warnings, *(_joined(some) for some in told if some)]:
        warnings.warn(f"{source}: {_sentence(p)}", ModelWarning, stacklevel=2)
    if declared:
        return _closed(source, robot, declared, start)
    if start:
        raise ModelError(source, ["it has no loops, so there is nothing to assemble; leave start out"])
    return robot


def _closed(source: str, robot: Robot, declared: Declared, start: Mapping[str, Numbers] | None) -> Robot:
    """The robot with its loops and couplings closed."""
    wanted, loops = tuple(n for n in declared.independent if n in {j.name for j in robot.joints}), []
    for x in declared.loops:
        turn = axis_frame(np.array(x.axis) / np.linalg.norm(x.axis), 0.0)
        frames = []
        for link, (xyz, rpy) in zip(x.links, x.origins, strict=True):
            f = robot.frame(link)
            frames.append((f.rotation @ _rotation(rpy) @ turn, f.rotation @ np.array(xyz) + f.translation))
        bodies = robot.frame(x.links[0]).body, robot.frame(x.links[1]).body
        if bodies[0] == bodies[1]:
            text = f"loop {x.name!r}: {x.links[0]!r} and {x.links[1]!r} are one body; a loop is between two"
            raise ModelError(source, [_sentence((x.line, text))])
        a, b = frames
        loops.append(Loop(x.name, x.kind, DIRECTIONS[x.kind], x.links, bodies, *a, *b, wanted))
    couplings = []
    for c in declared.couplings:
        for name in c.joints:
            if name not in {j.name for j in robot.joints if j.nq == 1}:
                text = f"coupling {c.name!r}: joint {name!r} has no coordinate of its own, or several"
                raise ModelError(source, [_sentence((c.line, text))])
        first, second, ratio = *c.joints, c.ratio
        if second in wanted and first not in wanted and ratio:
            first, second, ratio = second, first, 1 / ratio
        couplings.append(coupling(source, second, first, lambda q, ratio=ratio: ratio * q[0]))
    try:
        return close_tree(robot, loops, couplings, start=start)
    except ModelError as error:
        raise ModelError(source, error.problems) from None


def _parts(
    source: str, stem: str, root: Any, found: Findings
) -> tuple[str, dict[str, Inertia | None], list[Joint], dict[tuple[str, str], list[int]]]:
    """Name, links and joints of a robot from the root element, and the lines on which they stand. Raises ModelError
    with every problem found."""
    xml, extras, lines = clean(root, stem, found)
    if found.macro:
        text = f"{found.macro[1]}: an unexpanded xacro; run xacro first (xacro FILE > robot.urdf)"
        raise ModelError(source, [_sentence((found.macro[0], text))])
    described = parsed(xml)
    links, joints = _links(described), _joints(described, extras)
    tree = tree_problems(links, joints) if found.complete else [t for j in joints for t in joint_problems(j)]
    problems = found.problems + [_located(text, lines) for text in tree]
    if problems:
        problems.sort(key=lambda p: p[0] or np.inf)
        raise ModelError(source, [_sentence(p) for p in problems])
    return described.name, links, joints, lines


def _links(described: Any) -> dict[str, Inertia | None]:
    links: dict[str, Inertia | None] = {}
    for link in described.links:
        given = link.inertial
        if given is None:
            links.setdefault(link.name, None)
            continue
        R = _rotation(given.origin.rpy)
        tensor = R @ np.array(given.inertia.to_matrix()) @ R.T
        links.setdefault(link.name, Inertia.from_com(given.mass, given.origin.xyz, tensor))
    return links


def _joints(described: Any, extras: Any) -> list[Joint]:
    joints = []
    for j, extra in zip(described.joints, extras, strict=True):
        values = dict(extra)
        if j.axis is not None:
            values["axis"] = np.array(j.axis)
        if j.limit is not None:
            limits = j.limit
            values.update(lower=limits.lower, upper=limits.upper, effort=limits.effort, velocity=limits.velocity)
        if j.dynamics is not None:
            values.update(damping=j.dynamics.damping, friction=j.dynamics.friction)
        if j.mimic is not None:
            values["mimic"] = Mimic(j.mimic.joint, j.mimic.multiplier, j.mimic.offset)
        R, p = _rotation(j.origin.rpy), np.array(j.origin.xyz)
        joints.append(Joint(j.name, _KIND.get(j.type, j.type), j.parent, j.child, R, p, **values))
    return joints


def _rotation(rpy: Any) -> Array:
    return np.array(so3.rpy(*rpy), float) if any(rpy) else np.eye(3)


def _located(text: str, lines: dict[tuple[str, str], list[int]]) -> Finding:
    """(line, sentence) of a problem of the tree, after the link or joint it begins with."""
    subject = _SUBJECT.match(text)
    at = lines.get((subject[1], ast.literal_eval(subject[2]))) if subject else None
    if not at:
        return None, text
    return at[-1], text if len(at) == 1 else f"{text} (lines {', '.join(map(str, at[:9]))})"


def _joined(findings: list[Finding]) -> Finding:
    """One finding of several: the first three in full."""
    rest = f"; and {len(findings) - 3} more, see robot.report" if len(findings) > 3 else ""
    return findings[0][0], "; ".join([findings[0][1], *map(_sentence, findings[1:3])]) + rest


def _sentence(problem: Finding) -> str:
    line, text = problem
    return text if line is None else f"line {line}: {text}"
