"""A robot as text: one row a moving body, for print(robot) and the command line."""

import textwrap

import numpy as np

from ..errors import ModelError
from ..text import columns, terminal, told_apart
from .joints import QUATERNIONS

_WIDTH = 110
_FRAMES_SHOWN = 60


def table(robot):
    """The robot as text of at most about 110 columns, its own words in ASCII."""
    lines = [*textwrap.wrap(_header(robot), _WIDTH, subsequent_indent="  "), ""]
    if robot.bodies:
        lines += _grid(*_rows(robot))
        lines += ["", *_footnotes(robot)]
    else:
        lines += ["no moving body: there are no dynamics to compute; floating_base=True lets the root move", ""]
    plural = "" if len(robot.frames) == 1 else "s"
    lines += _list(f"{len(robot.frames)} frame{plural}: ", list(map(terminal, robot.frames)), _FRAMES_SHOWN)
    for note in robot.report:
        lines += textwrap.wrap(f"note: {terminal(note)}", _WIDTH, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(lines)


def _header(robot):
    gravity = ", ".join(f"{g:g}" for g in robot.gravity + 0.0)
    count = len(robot.bodies)
    base = "floating" if "floating" in robot.features else "fixed"
    return (
        f"{terminal(robot.name)}: nq = {robot.nq}, nv = {robot.nv}, {count} {'body' if count == 1 else 'bodies'}, "
        f"total mass {robot.total_mass:.6g} kg, gravity ({gravity}) m/s^2, base {base}"
    )


def _rows(robot):
    """Titles, rows of text and which columns are numbers."""
    split = robot.nq != robot.nv
    titles = ["#", "body", "parent", "joint", "kind", "q", *(["v"] if split else []), "mass", "lower .. upper"]
    titles += ["velocity", "effort"]
    rows, bound = [], _bound(robot)
    own = {j.name: j for j in (*robot.joints, *robot.mimics)}  # of a robot with loops others follow, without a q
    for b in robot.bodies:
        j = own.get(b.joint.name)
        given, j = j is not None, j or b.joint
        mark = "*" if j.mimic is not None else ""
        parent = robot.bodies[b.parent - 1].name if b.parent else "ground"
        row = [str(b.index), *map(terminal, (b.name, parent, j.name)), j.kind]
        row.append(mark + (_span(j.q_index, j.nq) if given else "-"))
        if split:
            row.append(mark + (_span(j.v_index, j.nv) if given else "-"))
        row += [f"{b.inertia.mass:.4g}", *_limits(j, bound if given else {})]
        rows.append(row)
    names = (1, 2, 3)
    numbers = [i for i, t in enumerate(titles) if t not in ("body", "parent", "joint", "kind", "lower .. upper")]
    return titles, rows, names, numbers


def _bound(robot):
    """{kind of limit: values} of the coordinates, followers heeded; {} where they leave a joint no range."""
    try:
        return {kind: robot.limit(kind) for kind in ("lower", "upper", "velocity", "effort")} if robot.mimics else {}
    except ModelError:
        return {}


def _limits(j, bound):
    """Range, velocity and effort as text: of a joint that others follow those that all of them keep."""
    own = [j.lower, j.upper, j.velocity, j.effort]
    if bound and j.mimic is None and j.nq == 1:
        own = [bound[kind][j.q_index if kind in ("lower", "upper") else j.v_index] for kind in bound]
    return [_range(*own[:2]), _limit(own[2]), _limit(own[3])]


def _footnotes(robot):
    lines = ["units: kg; rad or m, rad/s or m/s, Nm or N; - is no limit; q and v count from 0"]
    if any(j.kind in QUATERNIONS for j in robot.joints):
        lines.append("quaternions are (w, x, y, z), before the position; velocities are body twists, angular first")
    if "loop" in robot.features:
        lines += _closings(robot)
    for j in getattr(robot, "tree", robot).mimics:
        rule = f"{j.mimic.multiplier:g} * {terminal(j.mimic.joint)}"
        offset = f" {'-' if j.mimic.offset < 0 else '+'} {abs(j.mimic.offset):g}" if j.mimic.offset else ""
        lines.append(f"* mimic: {terminal(j.name)} = {rule}{offset}")
    if robot.mimics:
        none = "" if _bound(robot) else "; there is a joint that they leave no range"
        lines.append(f"limits of a joint that others follow are those that they keep, too{none}")
    if robot.velocity_limits is not None:
        lines.append("velocity limits also depend on the position: robot.velocity_limits(q)")
    for kind in ("acceleration", "jerk", "effort_rate"):
        values = [_limit(v) for v in robot.limit(kind)]
        if set(values) - {"-"}:
            lines += _list(f"{kind} limits: ", values if len(set(values)) > 1 else [f"{values[0]} each"])
    return lines


def _closings(robot):
    """What closes a robot with loops."""
    out = ["joints whose q is - follow: q and v are those of the others, robot.tree has all"]
    for x in robot.loops:
        links = " and ".join(map(terminal, x.links))
        out.append(f"loop {terminal(x.name)}: {terminal(x.kind)}, between {links}")
    for c in robot.couplings:
        out.append(f"coupling: {terminal(c.joint)} follows {', '.join(map(terminal, c.of))}")
    return [line for x in out for line in textwrap.wrap(x, _WIDTH, subsequent_indent="  ", break_on_hyphens=False)]


def _span(first, count):
    return str(first) if count == 1 else f"{first}-{first + count - 1}"


def _limit(value):
    return f"{value:.5g}" if np.isfinite(value) else "-"


def _range(lower, upper):
    if not np.isfinite(lower) and not np.isfinite(upper):
        return "-"
    return f"{_limit(lower)} .. {_limit(upper)}"


def _list(head, items, most=None):
    """Lines of "head a, b, c", broken between items."""
    shown = list(items if most is None else items[:most])
    if len(items) > len(shown):
        shown.append(f"and {len(items) - len(shown)} more")
    lines = [head]
    for i, item in enumerate(shown):
        item += ", " if i + 1 < len(shown) else ""
        if columns(lines[-1] + item.rstrip()) > _WIDTH and lines[-1].strip():
            lines.append("  ")
        lines[-1] += item
    return [line.rstrip() for line in lines]


# -- columns --------------------------------------------------------------------------------------------------


def _grid(titles, rows, names, numbers):
    """Aligned lines; names are cut until the line fits, or until one more cut would make two of them look alike."""
    cells = [[title, *(row[i] for row in rows)] for i, title in enumerate(titles)]
    widths = [max(map(columns, column)) for column in cells]
    while sum(widths) + 2 * (len(widths) - 1) > _WIDTH and max(widths[i] for i in names) > 8:
        widest = max(names, key=lambda i: widths[i])
        widths[widest] -= 1
    body, parent, joint = names
    both = told_apart(cells[body] + cells[parent], max(widths[body], widths[parent]))  # a body is called one thing
    cells[body], cells[parent] = both[: len(both) // 2], both[len(both) // 2 :]
    cells[joint] = told_apart(cells[joint], widths[joint])
    for i in names:
        widths[i] = max(map(columns, cells[i]))
    lines = []
    for row in zip(*cells, strict=True):
        parts = []
        for i, text in enumerate(row):
            gap = " " * (widths[i] - columns(text))
            parts.append(gap + text if i in numbers else text + gap)
        lines.append("  ".join(parts).rstrip())
    lines.insert(1, "  ".join("-" * w for w in widths))
    return lines
