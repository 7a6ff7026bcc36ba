"""What the canonical form of a robot aligns, makes exact and regroups, as a text, and what that saves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from ..errors import ModelError
from ..text import terminal
from .canonical import SHORT, almost_quarter_turns, as_written, canonical, is_permutation, moved_inertia
from .inertia import PARAMETERS

_COUNTER: dict[str, Any] = {}  # filled by od.function, which stands above the model
_COUNTED = ("inverse_dynamics", "forward_dynamics", "mass_matrix")


def report(robot):
    """Text; see Robot.canonical_report."""
    model = canonical(robot)
    R, p = ([x[i] for i in model.bodies] for x in (model.R, model.p))
    zeros = sum(int(np.sum(x == 0)) for x in (*R, *p))
    before, after = (sum(np.count_nonzero(x.parameters) for x in m.inertia[1:]) for m in (model, _regrouped(robot)))
    names = _names(model)
    lines = [
        f"canonical form of {robot.name}: {model.n} bodies",
        f"  placements: {sum(map(is_permutation, R))} of {model.n} rotations are quarter turns, "
        f"{zeros} of {12 * model.n} entries are zero",
        f"  inertial parameters that are not zero: {before}, {after} where only joint torques come out",
        *_listed("frames moved onto the joint axes (turned, shifted)", _frames(model, names)),
        f"  taken as exact: {_taken(robot)}",
        *_listed("rotations made exact (entries changed, by at most)", _rounded(model, names)),
        *_listed("parameters that go to the parent where only joint torques come out", _moved(model, names)),
    ]
    if robot.nv:
        lines += _counts(robot)
    near = almost_quarter_turns(robot)
    if near:
        lines.append(
            f"  angles written with few digits at {', '.join(near)}: load with snap_angles=1e-5 to take them as exact "
            "(fewer instructions; results then differ from the file's by as much)"
        )
    return "\n".join(map(terminal, lines))


def _regrouped(robot):
    return canonical(robot, regroup=True)


def _taken(robot):
    if not robot.snap_angles:
        return "nothing, all numbers are as written"
    snap = robot.snap_angles
    return (
        f"rotation entries within {snap:g} of 0 or 1, lengths and components of axes within {min(snap, SHORT):g} of 0; "
        "results may differ by as much, snap_angles=0 keeps the numbers"
    )


def _names(model):
    """Names of the bodies here; one between simple joints is named after the one it carries."""
    names = {i: b.name for i, b in zip(model.number[1:], model.robot.bodies, strict=True)}
    return {i: names.get(i) or f"between, at {names[min(k for k in names if k > i)]}" for i in model.bodies}


def _listed(title, rows):
    return [f"  {title}: none"] if not rows else [f"  {title}:", *(f"    {row}" for row in rows)]


def _frames(model, names):
    rows = []
    for i in model.number[1:]:
        R, p = model.to_body[i]
        angle = np.degrees(np.arctan2(np.linalg.norm(R - R.T) / np.sqrt(8), 0.5 * (np.trace(R) - 1)))
        far = np.linalg.norm(p)
        if angle or far:
            rows.append(f"{names[i]}: {angle:.4g} deg, {far:.4g} m")
    return rows


def _rounded(model, names):
    rows = ((i, *model.rounded[i]) for i in model.bodies)
    return [f"{names[i]}: {count}, {largest:.1e}" for i, count, largest in rows if count]


def _moved(model, names):
    after, moved = moved_inertia(model)
    rows = []
    for i in model.bodies:
        went = [x for x, y in zip(PARAMETERS, moved[i].parameters, strict=True) if y]
        left = [x for x, y in zip(PARAMETERS, after[i].parameters, strict=True) if y]
        if went:
            where = names[model.parent[i]] if model.parent[i] else "the ground, where they vanish"
            rows.append(f"{names[i]}: {' '.join(went)} to {where}; keeps {' '.join(left) or 'nothing'}")
    return rows


def _counts(robot):
    forms = {"as written": as_written(robot), "canonical": canonical(robot), "regrouped": _regrouped(robot)}
    lines = ["  instructions, order 0" + "".join(f"{name:>12}" for name in forms)]
    for quantity in _COUNTED:
        try:
            counts = [_COUNTER["instructions"](robot, quantity, model) for model in forms.values()]
        except ModelError:  # a joint that moves no inertia has no forward dynamics
            counts = ["none"] * len(forms)
        lines.append(f"    {quantity:19}" + "".join(f"{x:>12}" for x in counts))
    return lines


F = TypeVar("F", bound=Callable[..., int])


def counts_instructions(function: F) -> F:
    """Decorator of the function (robot, quantity, model) -> instructions that reports count with."""
    _COUNTER["instructions"] = function
    return function
