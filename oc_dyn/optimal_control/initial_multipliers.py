"""Multipliers to start from, of a solution of the same problem on another mesh, for warm starts of interior points.

What bounds and limits have is a measure over the time: the multiplier of a bound that holds on an interval grows with
its length, that of a state that touches its bound does not. So sums up to a time are interpolated, phase by phase, and
each place gets what its part of the time adds. Those of the dynamics, and all of other equations, follow from the
stationarity of the Lagrangian at the guess, by least squares (as interior-point methods start them: Waechter, Biegler
2006, section 3.6).
"""

from itertools import pairwise

import casadi as ca
import numpy as np

from .worst_rows import function_of

ONCE = (0.0, 0.0)  # the part of the time of what is at one place whatever the mesh
DAMPING = 1e-8  # of the least squares, relative: equations may say the same


def alike(made, initial):
    """Whether unknowns and rows of a Transcribed mean what those of a Solution do, but for the mesh."""
    other = initial.transcribed
    names = [(x.state_names, x.control_names, len(x.phases), x.times, x.free_mesh) for x in (made, other)]
    return names[0] == names[1] and made.method == other.method


class _Places:
    """Unknowns x and rows g of a Transcribed as quantities along the time: {label: [(start and end of the part of the
    phase that it stands for, scale, number)]}, those of one label having the same meaning at other times."""

    def __init__(self, made, steps):
        self.made, self.x, self.g = made, {}, {}
        intervals, nodes = _along(made, steps)
        stages = [(stretch, number) for number, stretch in enumerate(made.stretches) for _ in range(stretch.count)]
        for stage, (stretch, kind) in enumerate([*stages, (None, len(made.stretches))]):
            self._add_unknowns(stretch, stage, nodes[stage], intervals[stage])
            self._add_rows(stage, kind, (nodes if made.nodal else intervals)[stage])

    def _add_unknowns(self, stretch, stage, node, interval):
        made, place = self.made, int(self.made.assembly.first[stage])
        phase = len(made.phases) - 1 if stretch is None else stretch.phase
        end = "start" if stage == 0 else "goal" if stretch is None else ""
        parts = [(("x", phase, end), made.x_scale), (("T", end), made.T_scale)]
        parts += [(("u", phase), made.u_scale)] if made.nodal or stretch else []
        parts += [(("extra", phase, j), e.scale) for j, e in enumerate(stretch.extras)] if stretch else []
        parts += [(("length", phase), np.ones(1))] if made.free_mesh and stretch else []
        for label, scale in parts:
            once = label[0] == "T" or (label[0] == "x" and end)
            at = ONCE if once else node if label[0] == "x" or (label[0] == "u" and made.nodal) else interval
            self._add(self.x, label, at, place + np.arange(scale.size), scale)
            place += scale.size

    def _add_rows(self, stage, kind, at):
        rows, place = self.made.assembly.stage_rows[stage], 0
        for j, block in enumerate(self.made.row_blocks[stage]):
            own, place = rows[place : place + block.size], place + block.size
            if block.constraint is not None:
                once = block.where == "start" or kind == len(self.made.stretches)
                once |= block.constraint.fraction is not None
                label = kind, block.where, j, block.size
                self._add(self.g, label, ONCE if once else at, own, np.ones(block.size))

    @staticmethod
    def _add(into, label, at, numbers, scales):
        for i, (number, scale) in enumerate(zip(numbers, scales, strict=True)):
            if number >= 0:
                into.setdefault((*label, i), []).append((*at, scale, number))


def _along(made, steps):
    """Parts of their phase, (start, end), that intervals stand for, and nodes, each of half the intervals about it."""
    intervals, nodes, at = [], [], 0
    for phase in made.phases:
        passed = np.cumsum([0.0, *steps[at : at + phase.nodes]])
        passed, at = passed / passed[-1], at + phase.nodes
        middles = [0.0, *(passed[:-1] + passed[1:]) / 2, 1.0]
        intervals += pairwise(passed)
        nodes += list(pairwise(middles))[:-1]
    return [*intervals, (1.0, 1.0)], [*nodes, (middles[-2], 1.0)]


def _carried(mine, theirs, values, size):
    """(size,) multipliers with the meaning of mine from those of theirs, zero where there is none."""
    out = np.zeros(size)
    for label in mine.keys() & theirs.keys():
        start, end, scale, number = (np.array(x) for x in zip(*theirs[label], strict=True))
        own_start, own_end, own_scale, own = (np.array(x) for x in zip(*mine[label], strict=True))
        value = values[number] / scale
        if (start[0], end[0]) == ONCE:
            out[own] = value[0] * own_scale
            continue
        sums = np.concatenate([[0.0], np.cumsum(value)])
        at = np.concatenate([start[:1], end])
        out[own] = (np.interp(own_end, at, sums) - np.interp(own_start, at, sums)) * own_scale
    return out


def multipliers(made, initial, given):
    """(lam_x, lam_g) from an initial solution of the same problem on another mesh by the same method; see the module.
    given: {x0, p, lbx, ubx, lbg, ubg}."""
    durations = made.values(given["x0"])[2]
    mine = _Places(made, made.steps(durations, made.relative_lengths(given["x0"])))
    theirs = _Places(initial.transcribed, np.diff(initial.t))
    n, m = made.assembly.size
    lam_x = _carried(mine.x, theirs.x, initial.multipliers[0], n)
    lam_g = _carried(mine.g, theirs.g, initial.multipliers[1], m)
    lam_x = _of_bounds(lam_x, given["lbx"], given["ubx"])
    lam_g = _of_bounds(lam_g, given["lbg"], given["ubg"])
    return _stationary(made, given, lam_x, lam_g)


def _of_bounds(lam, lower, upper):
    """Multipliers of the sides that there are; those of equations are for _stationary."""
    lam = np.where(np.isfinite(upper), lam, np.minimum(lam, 0.0))
    lam = np.where(np.isfinite(lower), lam, np.maximum(lam, 0.0))
    return np.where(lower == upper, 0.0, lam)


def _stationary(made, given, lam_x, lam_g):
    """lam_g with those of equations such that the Lagrangian is stationary, as well as it can be."""
    gradient, J = (function_of(made, what)(given["x0"], given["p"]) for what in ("gradient", "jacobian"))
    equal = np.flatnonzero(given["lbg"] == given["ubg"])
    free = np.flatnonzero(given["lbx"] < given["ubx"])
    r = gradient.full().ravel() + (J.T @ ca.DM(lam_g)).full().ravel() + lam_x
    A = J[equal.tolist(), free.tolist()]
    M = A @ A.T
    M = M + DAMPING * max(1.0, float(ca.norm_inf(M.nz[:]))) * ca.DM.eye(len(equal))
    y = ca.solve(M, -(A @ ca.DM(r[free])), "ldl").full().ravel()
    if not np.isfinite(y).all():
        return lam_x, lam_g
    out = lam_g.copy()
    out[equal] = y
    return lam_x, out
