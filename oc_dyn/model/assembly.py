"""Assembling a robot with loops: configurations that close them, and which coordinates are independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ModelError, ShapeError
from ..numbers import are_sane, as_floats
from ..types import Array, Numbers
from .cache import cached
from .closure import groups, residual, row_owners
from .loop_joints import may_depend

CLOSED, ROUNDED = 1e-9, 1e-5  # residual [m, 1] of loops that count as closed; of those that files round
_RANK = 1e-5  # singular values below this share of the largest count as zero
_STEPS, _TRIES = 100, 12


def assembled(draft: Any, start: Array, independent: Sequence[str] | None) -> Array:
    """q of the tree (tree.nq,) at which all loops are closed, from `start` on, else from seeded places near it; with
    the independent joints as they start where that can be."""
    tree = draft.tree
    kept = draft.rows("v", independent) if independent else []
    rng = np.random.default_rng(0)
    best: tuple[float, Array] = (np.inf, start)
    for k in range(_TRIES):
        for held in (kept, []) if kept else ([],):
            reach = 0.0 if k == 0 else 0.3 * k
            step = rng.uniform(-reach, reach, tree.nv)
            step[held] = 0.0
            q = newton(draft, np.asarray(tree.integrate(start, step)), held)
            off = largest(draft, q)
            if off <= CLOSED and not turned_over(draft, q):
                return q
            if off < best[0]:
                best = off, q
    r = np.abs(np.array(residual(draft)(best[1])[0]).ravel())
    owners = row_owners(draft)
    worst = {name: max(x for x, n in zip(r, owners, strict=True) if n == name) for name in owners}
    open_ = ", ".join(f"{n!r} by {x:.3g}" for n, x in worst.items() if x > CLOSED) or "their frames turned over"
    problem = f"its loops cannot be assembled; left open: {open_} [m, 1]; give start={{joint: value}} near a closed one"
    raise ModelError(draft.name, [problem])


def newton(robot: Any, q: Array, held: Sequence[int], rows: Sequence[int] | None = None, steps: int = _STEPS) -> Array:
    """q of the tree after damped Gauss-Newton steps towards closed loops, the velocities `held` at zero. rows: of
    residual that count, None for all."""
    tree, f = robot.tree, residual(robot)
    free = [k for k in range(tree.nv) if k not in set(held)]
    rows = slice(None) if rows is None else list(rows)
    r, J = (np.array(x)[rows] for x in f(q)[:2])
    damping = 1e-3
    for _ in range(steps):
        if np.abs(r).max(initial=0.0) <= 1e-3 * CLOSED or not free:
            break
        A, b = J[:, free], r.ravel()
        step = np.zeros(tree.nv)
        step[free] = -np.linalg.lstsq(
            np.vstack([A, np.sqrt(damping) * np.eye(len(free))]), np.r_[b, np.zeros(len(free))], rcond=None
        )[0]
        step *= min(1.0, 1.0 / max(np.abs(step).max(), 1e-300))
        trial = np.asarray(tree.integrate(q, step))
        rt, Jt = (np.array(x)[rows] for x in f(trial)[:2])
        if np.abs(rt).max() < np.abs(r).max() or np.linalg.norm(rt) < np.linalg.norm(r):
            q, r, J, damping = trial, rt, Jt, max(damping * 0.1, 1e-15)
        else:
            damping = max(damping, 1e-12) * 10
            if damping > 1e6:
                break
    return tree.normalized(q)


def largest(robot: Any, q: Array) -> float:
    """Largest residual at q of the tree."""
    return float(np.abs(np.array(residual(robot)(q)[0])).max(initial=0.0))


def turned_over(robot: Any, q: Array) -> list[str]:
    """Names of loops whose frames meet turned over: axes against each other."""
    sides = np.array(residual(robot)(q)[2]).ravel()
    return [loop.name for loop, side in zip(robot.loops, sides, strict=True) if not side > 0]


def chosen_independent(draft: Any, q: Array, asked: Sequence[str] | None) -> tuple[str, ...]:
    """Names of the joints whose coordinates are independent at q of the tree, in the order of the tree.

    Dependent ones are picked so that the loops determine them best; joints on no loop are independent.
    """
    tree = draft.tree
    J = np.array(residual(draft)(q)[1])
    rank = rank_of(J)
    wanted = tuple(asked) if asked is not None else tuple(n for x in draft.loops for n in x.independent)
    for name in wanted:
        tree.joint(name)
    on_loops = [j for j in tree.joints if np.abs(J[:, j.v_index : j.v_index + j.nv]).max(initial=0.0) > 1e-9]
    coupled = {c.joint for c in draft.couplings}
    able = [j for j in on_loops if may_depend(j) and j.name not in wanted]
    picked = [j for j in able if j.name in coupled]
    left = [j for j in able if j.name not in coupled]
    if asked is not None:
        picked, left = able, []
    columns = [c for j in picked for c in range(j.v_index, j.v_index + j.nv)]
    while len(columns) < rank and left:
        best = max(left, key=lambda j: _volume(J, columns, j))
        left.remove(best)
        if _volume(J, columns, best) < _RANK * np.abs(J).max():
            break
        picked.append(best)
        columns += range(best.v_index, best.v_index + best.nv)
    _check_choice(draft, J, rank, columns, [j.name for j in picked], wanted)
    names = {j.name for j in picked}
    return tuple(j.name for j in tree.joints if j.name not in names)


def _check_choice(draft: Any, J: Array, rank: int, columns: list[int], picked: list[str], wanted: Any) -> None:
    free, found = draft.tree.nv - rank, draft.tree.nv - len(columns)
    if rank_of(J[:, columns]) == rank == len(columns):
        return
    names = ", ".join(picked) or "none"
    problem = f"{found} velocities are independent, expected {free} as the loops leave; dependent joints are {names}"
    if len(columns) == rank:
        problem = f"it is singular there: the loops do not determine {names}; choose other independent joints"
    hint = "; give independent= of a loop, joints of one coordinate each, or cut the loops elsewhere" if wanted else ""
    raise ModelError(draft.name, [problem + hint])


def _volume(J: Array, columns: list[int], joint: Any) -> float:
    """How much of a joint's columns is not in the span of those picked."""
    own = J[:, joint.v_index : joint.v_index + joint.nv]
    if columns:
        Q, R = np.linalg.qr(J[:, columns])
        Q = Q[:, np.abs(np.diag(R)) > _RANK * np.abs(R).max()]
        own = own - Q @ (Q.T @ own)
    return float(np.linalg.svd(own, compute_uv=False)[-1])


def rank_of(J: Array) -> int:
    """Number of singular values that count, 1e-5 of the largest and above: files round angles."""
    if not J.size:
        return 0
    s = np.linalg.svd(J, compute_uv=False)
    return int((s > _RANK * max(s[0], 1e-300)).sum()) if s[0] > 1e-12 else 0


@dataclass(frozen=True)
class Block:
    """What is solved together: names of loops and couplings, rows of residual, dependent joints and their rows of
    tree.v. square: as many rows as columns; else all rows, which are solved in least squares."""

    names: tuple[str, ...]
    rows: list[int]
    joints: tuple[str, ...]
    columns: list[int]
    square: bool


def closing_blocks(robot: Any) -> list[Block]:
    """Blocks of a robot, one for each of its groups.

    Where the rows that closing_rows leaves out are the same combinations of those kept wherever the robot stands, as in
    plane and spherical linkages, those kept are as regular as the mechanism. In overconstrained ones, such as
    Bennett's, they are not: any choice of rows gets singular somewhere, all rows together only where the mechanism is.
    """
    return cached(robot, ("closing blocks",), lambda: _closing_blocks(robot))


def _closing_blocks(robot: Any) -> list[Block]:
    f, kept, owners, places = residual(robot), closing_rows(robot), row_owners(robot), closed_places(robot)
    stacked = np.hstack([np.array(f(q)[1]) for q in places])
    noise = 1e-6 + 1e3 * max(largest(robot, q) for q in places)  # of a Jacobian where files round
    out = []
    for names, joints in groups(robot):
        columns = robot.rows("v", joints)
        every = [k for k, n in enumerate(owners) if n in names]
        mine = [k for k in every if k in kept]
        S = stacked[:, [n * robot.tree.nv + c for n in range(len(places)) for c in columns]]
        Q = np.linalg.qr(S[mine].T)[0]
        rest = S[every] - (S[every] @ Q) @ Q.T
        norms = (np.linalg.norm(x, axis=1).max(initial=0.0) for x in (rest, S[every]))
        square = bool(next(norms) <= noise * next(norms))
        out.append(Block(tuple(names), mine if square else every, tuple(joints), columns, square))
    return out


def solved_rows(robot: Any) -> list[int]:
    """Rows of all blocks."""
    return sorted(k for b in closing_blocks(robot) for k in b.rows)


def closing_rows(robot: Any) -> list[int]:
    """Rows of residual that determine the dependent coordinates near home: as many as these, the best ones at five
    assembled configurations; there the others say the same again."""
    return cached(robot, ("closing rows",), lambda: _closing_rows(robot))


def _closing_rows(robot: Any) -> list[int]:
    columns, f = robot.rows("v", robot.dependent), residual(robot)
    owners = row_owners(robot)
    rows = independent_rows(np.hstack([np.array(f(q)[1])[:, columns] for q in closed_places(robot)]), len(columns))
    return sorted(rows, key=lambda k: (owners.index(owners[k]), k))


def closed_places(robot: Any) -> list[Array]:
    """Five configurations of the tree, closed, at home and near it; fewer where it closes at fewer of them."""
    return cached(robot, ("closed places",), lambda: _closed_places(robot))


def _closed_places(robot: Any) -> list[Array]:
    rng, places = np.random.default_rng(1), [robot.home]
    independent = robot.rows("v", robot.independent)
    for _ in range(4):
        step = np.zeros(robot.tree.nv)
        step[independent] = rng.uniform(-0.1, 0.1, len(independent))
        q = newton(robot, np.asarray(robot.tree.integrate(robot.home, step)), independent)
        if largest(robot, q) <= ROUNDED:
            places.append(q)
    return places


def tolerances(robot: Any) -> Array:
    """(rows,) residuals that loops may have: 1e-9, and of rows that say the same again as those that are closed, ten
    times what they are off at home and near it, for files round angles and lengths."""
    return cached(robot, ("tolerances",), lambda: _tolerances(robot))


def _tolerances(robot: Any) -> Array:
    kept, held = solved_rows(robot), robot.rows("v", robot.independent)
    off = np.zeros(len(row_owners(robot)))
    for q in closed_places(robot):
        r = np.abs(np.array(residual(robot)(newton(robot, q, held, kept))[0]).ravel())
        off = np.maximum(off, r)
    if off.max(initial=0.0) > ROUNDED:
        owners = row_owners(robot)
        names = ", ".join(dict.fromkeys(repr(owners[k]) for k in np.flatnonzero(off > ROUNDED)))
        problem = f"loops {names} hold more than the joints leave free: near home they open by {off.max():.2g} [m, 1]"
        raise ModelError(robot.name, [problem])
    out = np.where(10 * off > CLOSED, 10 * off, CLOSED)
    out[[k for b in closing_blocks(robot) if b.square for k in b.rows]] = CLOSED
    return out


def independent_rows(stacked: Array, rank: int, first: Sequence[int] = ()) -> list[int]:
    """Numbers of so many rows, picked one after the other so that each has most that is not in those before; those of
    `first` to begin with."""
    rows: list[int] = []
    rest = stacked.copy()
    for n in range(rank):
        k = int(first[n]) if n < len(first) else int(np.argmax(np.linalg.norm(rest, axis=1)))
        rows.append(k)
        direction = rest[k] / np.linalg.norm(rest[k])
        rest -= np.outer(rest @ direction, direction)
    return sorted(rows)


def closed(robot: Any, q: Numbers) -> Array:
    """See LoopRobot.close."""
    tree = robot.tree
    q = np.array(as_floats("close: q", q))
    if not are_sane(q):
        raise ShapeError("close: q has entries that are not finite")
    if q.ndim not in (1, 2) or q.shape[0] != tree.nq:
        raise ShapeError(f"close: q got shape {q.shape}, expected ({tree.nq},) or ({tree.nq}, N), q of the tree")
    q = tree.normalized(q)
    if q.ndim == 2:
        dependent = robot.rows("q", robot.dependent)
        out: list[Array] = []
        for k, column in enumerate(q.T):
            if k:
                column = column.copy()
                column[dependent] = out[-1][dependent]
            out.append(closed(robot, column))
        return np.stack(out, 1) if out else q
    held = robot.rows("v", robot.independent)
    found = newton(robot, newton(robot, q, held), held, solved_rows(robot))
    r, turned = np.abs(np.array(residual(robot)(found)[0]).ravel()), turned_over(robot, found)
    if np.all(r <= tolerances(robot)) and not turned:
        return found
    r, J = (np.array(x) for x in residual(robot)(found)[:2])
    raise ModelError(robot.name, [_open(robot, r.ravel(), J, turned)])


def _open(robot: Any, r: Array, J: Array, turned: list[str]) -> str:
    """What to say of loops that do not close: which, by how much, and which joint is in a singular position."""
    owners, beyond = row_owners(robot), np.abs(r) > tolerances(robot)
    names = [n for n in dict.fromkeys(owners) if any(beyond[[o == n for o in owners]])] or turned
    text = f"loops {', '.join(map(repr, names))} cannot be closed there: {np.abs(r).max():.3g} [m, 1] apart"
    columns = robot.rows("v", robot.dependent)
    _, s, V = np.linalg.svd(J[:, columns])
    if s[-1] < 1e-4 * s[0]:
        at = robot.tree.velocity_names[columns[int(np.argmax(np.abs(V[-1])))]]
        text += f"; near there the position is singular, joint {at!r} turns back"
    return text + "; independent joints as they are, dependent ones from those given"
