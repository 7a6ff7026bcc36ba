"""Whether recordings tell the parameters of an elastic robot apart, and which they do not."""

from __future__ import annotations

import numpy as np

from ...errors import SolveError
from ...types import Array

_WEAK = 1e-6  # of the largest singular value of the scaled rows: below it a motion says nothing
_NOISE = 0.25  # share of a combination's rows that may be noise
_PART = 0.3  # of the largest entry of a combination that is not told: what takes part in it


def check_identifiable(
    robot: str, names: list[str], even: list[Array], odd: list[Array], weights: list[Array], prior: Array
) -> float:
    """Condition number of the weighted rows, columns scaled to unit length; SolveError naming what is not told.

    even, odd: derivatives (E, T, p) of the equations by the parameters, per recording, from two halves of the samples:
    their difference shows how much of the rows is noise. prior (p,): what is known of each parameter besides.
    """
    p = len(names)
    mean, noise = np.zeros((p, p)), np.zeros((p, p))
    for a, b, w in zip(even, odd, weights, strict=True):
        for A, B, weight in zip(a, b, w, strict=True):
            S, D = 0.5 * (A + B), 0.5 * (A - B)
            mean += weight * (S.T @ S)
            noise += weight * (D.T @ D)
    length = np.sqrt(np.diag(mean))
    silent = (length <= 1e-13 * length.max(initial=0.0)) & (prior == 0)  # of rows alone: a prior has no size of theirs
    mean += np.diag(prior)
    length = np.sqrt(np.diag(mean))
    scale = 1 / np.where(silent, 1.0, length)
    values, vectors = np.linalg.eigh(mean * scale[:, None] * scale)
    parts = [np.eye(p)[k] for k in np.flatnonzero(silent)]
    parts += [v for x, v in zip(values, vectors.T, strict=True) if x < _WEAK**2 * values[-1]]
    if not parts:
        root = vectors / np.sqrt(values)
        noise = noise * scale[:, None] * scale
        shares, combinations = np.linalg.eigh(root.T @ noise @ root)
        parts = [root @ c for x, c in zip(shares, combinations.T, strict=True) if x > _NOISE]
    if parts:
        _refuse(robot, names, parts)
    return float(np.sqrt(values[-1] / values[0]))


def _refuse(robot: str, names: list[str], combinations: list[Array]) -> None:
    shown: list[str] = []
    for c in combinations:
        size = np.abs(c)
        mine = [names[k] for k in np.flatnonzero(size >= _PART * size.max())]
        text = mine[0] if len(mine) == 1 else f"({', '.join(mine)}) from each other"
        shown += [text] if text not in shown else []
    more = f", and {len(shown) - 4} more" if len(shown) > 4 else ""
    raise SolveError(
        f"identify_elastic: the recordings of {robot} do not tell {'; '.join(shown[:4])}{more}; give "
        "recordings that excite them (see od.elastic.exciting_motion), or say what they are with known={name: value}, "
        "or do not ask for them",
        "unidentifiable",
    )
