"""Which limits of a program give way last: bounds of controls, and rows that are a multiple of an output plus a number.

A torque is a function of states and controls; that a limit is one of it shows in numbers, at places picked at random.
"""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ..types import Array
from .program import Program

_PLACES, _SPREAD, _SAME = 6, 0.3, 1e-9


def hard_limits(made: Any, program: Program, outputs: ca.Function) -> Array:
    """(n + m,) bool. outputs: (unknowns, parameter of the program) -> values at the first node."""
    n, m, _n_p = program.sizes
    out = np.zeros(n + m, bool)
    skip, size = made.x_scale.size + len(made.times), made.u_scale.size
    for a, b in zip(made.assembly.first[:-1], made.assembly.first[1:], strict=True):
        out[a + skip : min(a + skip + size, b)] = True
    kinds = [g.kind for g in made.assembly.groups for _ in range(g.count)]
    rows = made.assembly.stage_rows
    known = _multiples(made, program, outputs, rows[0])
    for of, own in zip(kinds, rows, strict=True):
        if of is kinds[0]:
            out[n + own[known & (own >= 0)]] = True
    return out


def _multiples(made: Any, program: Program, outputs: ca.Function, rows: Array) -> Array:
    """Which of the first stage's rows are an output times a number plus a number."""
    rng, (n, _, n_p) = np.random.default_rng(0), program.sizes
    x = made.guess(None)[:, None] + _SPREAD * rng.normal(size=(n, _PLACES))
    p = _SPREAD * rng.normal(size=(n_p, _PLACES))
    hidden = made.hidden_values()
    p[made.n_p - hidden.size : made.n_p] = hidden[:, None]
    p[made.n_p :: made.n_s] = made.shares[:, None]
    g = np.array([program.fg(x[:, k], p[:, k])[1].full().ravel() for k in range(_PLACES)]).T
    y = np.array([ca.DM(ca.vertcat(*outputs.call([x[:, k], p[:, k]]))).full().ravel() for k in range(_PLACES)]).T
    out = np.zeros(rows.size, bool)
    y = y[np.isfinite(y).all(axis=1) & (np.ptp(y, axis=1) > 0)]
    for i, r in enumerate(rows):
        if r >= 0 and np.isfinite(g[r]).all() and np.ptp(g[r]) > 0:
            out[i] = any(abs(abs(np.corrcoef(g[r], o)[0, 1]) - 1) < _SAME for o in y)
    return out
