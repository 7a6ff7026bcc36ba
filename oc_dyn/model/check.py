"""What can be wrong with a tree of links and joints, each problem one sentence that names the culprit."""

import difflib

import numpy as np

from . import joints as jt
from .inertia import unphysical
from .massless import mass_matrix, moved
from .parameters import of_joints

_HINTS = 20  # near names are looked for this often; each look compares all names


def tree_problems(links, joints):
    """List of problems (empty when sound) of links {name: Inertia or None} and a sequence of Joint."""
    problems, broken = [], []  # broken: what keeps the tree from being judged as a whole
    if not links:
        return ["there is no link; a robot needs at least its root link"]
    seen = set()
    for j in joints:
        if j.name in seen:
            problems.append(f"joint {j.name!r} is defined more than once; give every joint its own name")
        seen.add(j.name)
    parents = {}
    for j in joints:
        for end, link in (("parent", j.parent), ("child", j.child)):
            if link not in links:
                hint = _hint(link, links) if len(broken) < _HINTS else ""
                broken.append(f"joint {j.name!r}: its {end} link {link!r} does not exist{hint}")
        if j.child == j.parent:
            broken.append(f"joint {j.name!r}: link {j.child!r} is its parent and its child; give it another child")
        elif j.child in parents:
            broken.append(
                f"link {j.child!r} is the child of two joints, {parents[j.child]!r} and {j.name!r}; "
                "closed loops are not supported"
            )
        parents.setdefault(j.child, j.name)
        problems += joint_problems(j)
    problems += _mimic_problems(joints)
    return problems + (broken or _root_problems(links, joints, parents))


def _root_problems(links, joints, parents):
    """What is wrong with the tree as a whole; every link exists and has at most one joint in `parents` above it."""
    problems = []
    roots = [link for link in links if link not in parents]
    if not roots:
        return [f"kinematic loop without a root: {_loop(joints)}; one link must have no parent joint"]
    if len(roots) > 1:
        names = ", ".join(map(repr, roots))
        problems.append(f"{len(roots)} root links: {names}; a robot has one, connect the others by joints")
    reached, stack = set(), list(roots)
    below = {}
    for j in joints:
        below.setdefault(j.parent, []).append(j.child)
    while stack:
        link = stack.pop()
        reached.add(link)
        stack += below.get(link, [])
    if len(reached) < len(links):
        loop = _loop([j for j in joints if j.child not in reached])
        problems.append(f"kinematic loop: {loop}; closed loops are not supported")
    return problems


def definite_problems(robot):
    """Problems with inertias that give some motion of the robot a negative kinetic energy; none for what is only odd.

    Links with a negative mass or principal moment are let pass where what moves with them, and the armatures, make up
    for it at a few configurations.
    """
    bad = {name: x and unphysical(x.mass, x.tensor_com) for name, x in robot.description[0].items()}
    bad = {name: why for name, why in bad.items() if why and why.endswith("negative")}
    if not bad or not robot.nv:
        return []
    for seed in range(4):
        away = np.random.default_rng(seed).uniform(-np.pi, np.pi, robot.nv)  # whatever the limits are
        M = mass_matrix(robot, robot.integrate(robot.neutral(), away))
        size = np.sqrt(np.abs(np.diag(M)))
        size[size <= 1e-8 * size.max()] = 1.0  # joints that move nothing
        if np.linalg.eigvalsh(M / np.outer(size, size))[0] < -1e-9:
            cure = "the mass matrix is not positive with it; correct it, or pass check_inertia=False"
            return [f"link {name!r}: {why}; {cure}" for name, why in bad.items()]
    return []


def motion_doubts(robot):
    """(joints that move no inertia, joints whose limits keep them still): lists of sentences, one per joint."""
    nothing = (moved(robot) == 0) & (of_joints(robot, "armature") == 0)
    cure = "forward dynamics needs a mass behind it, an armature, or the joint locked"
    idle = [
        f"joint {j.name!r} moves no inertia; {cure}"
        for j in robot.joints
        if j.nv and nothing[j.v_index : j.v_index + j.nv].all()
    ]
    zero = []
    for j in robot.joints + robot.mimics:
        limits = (
            ("velocity",) if j.mimic is not None else ("effort", "velocity")
        )  # followers have no drive of their own
        named = [x for x in limits if getattr(j, x) == 0]
        if named:
            zero.append(f"joint {j.name!r}: its {' and '.join(named)} limit is 0 and kept; a plan cannot move it")
    return idle, zero


def joint_problems(j):
    """What is wrong with one joint taken alone."""
    problems = []
    if j.kind != "fixed" and j.kind not in jt.KINDS:
        problems.append(f"joint {j.name!r} has type {j.kind!r}; supported: fixed, {', '.join(jt.KINDS)}")
        return problems
    if j.kind not in ("fixed", *jt.WITHOUT_AXIS):
        axis = np.asarray(j.axis, float)
        if axis.shape != (3,) or not np.all(np.isfinite(axis)):
            problems.append(f"joint {j.name!r}: axis is {axis.tolist()}, expected three finite numbers")
        elif np.linalg.norm(axis) < 1e-9:
            problems.append(f"joint {j.name!r}: its axis is zero; give a direction such as 0 0 1")
    if j.lower > j.upper:
        problems.append(f"joint {j.name!r}: lower limit {j.lower} is above the upper limit {j.upper}")
    for limit in ("velocity", "effort", "acceleration", "jerk", "effort_rate"):
        value = getattr(j, limit)
        if not value >= 0:
            problems.append(f"joint {j.name!r}: limit {limit} is {value}, expected a number of at least 0")
    return problems


def _mimic_problems(joints):
    problems = []
    by_name = {j.name: j for j in joints}
    sound = set()  # joints whose masters were followed to the end: long chains take no longer than their length
    for j in joints:
        if j.mimic is None:
            continue
        master, trail = by_name.get(j.mimic.joint), {j.name: True}
        if master is None:
            hint = _hint(j.mimic.joint, by_name) if len(problems) < _HINTS else ""
            problems.append(f"joint {j.name!r} mimics joint {j.mimic.joint!r}, which does not exist{hint}")
            continue
        if master.nq != 1 or j.nq != 1:
            problems.append(f"joint {j.name!r} mimics {master.name!r}; both must have one coordinate")
        while master is not None and master.mimic is not None and master.name not in sound:
            if master.name in trail:
                problems.append(f"joints {', '.join(map(repr, trail))} mimic each other in a circle")
                break
            trail[master.name] = True
            master = by_name.get(master.mimic.joint)
        sound.update(trail)
    return problems


def _loop(joints):
    """Links of one kinematic loop, in the order of the joints, and these joints, as text."""
    parent, above = {j.child: j.parent for j in joints}, {j.child: j.name for j in joints}
    link = next(iter(parent))
    seen = {}  # in order
    while link not in seen:
        seen[link] = True
        link = parent[link]
    seen = list(seen)
    links = seen[seen.index(link) :][::-1]
    return f"{', '.join(links)} by joints {', '.join(repr(above[x]) for x in links)}"


def _hint(name, known):
    near = difflib.get_close_matches(str(name), list(known), n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
