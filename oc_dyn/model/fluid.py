"""What a still fluid does to a body that moves through it: added inertia and drag, after Fossen 2011.

In the link's frame, V its twist [angular; linear]: the fluid pushes with -(M_A V' - ad(V)^T M_A V) - D V - d |V| V,
entries of |V| V one by one. Weight and buoyancy are left out: buoyancy is an external wrench.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import ModelError, ShapeError
from ..lie.se3 import Ad_inv
from ..numbers import are_sane, as_floats
from ..types import Array, Numbers
from .read_only import ReadOnlyArrays


@dataclass(frozen=True, eq=False)
class Fluid(ReadOnlyArrays):
    """Added inertia (6, 6), linear drag (6, 6) and quadratic drag (6,) of a link, [angular; linear], in its frame; the
    pose of that in the frame in which it is used."""

    added: Array
    drag: Array
    quadratic: Array
    rotation: Array = field(default_factory=lambda: np.eye(3))
    translation: Array = field(default_factory=lambda: np.zeros(3))

    def expressed_in(self, R: Array, p: Array) -> Fluid:
        """The same seen from a frame in which this one has rotation R (3, 3) and origin p (3,)."""
        return replace(self, rotation=R @ self.rotation, translation=R @ self.translation + p)

    @property
    def carry(self) -> Array:
        """(6, 6) the twist seen from the link's frame, of one in the frame in which this is used."""
        return np.array(Ad_inv((self.rotation, self.translation)), float)


def checked_fluid(
    where: str, added: Numbers | None, drag: Numbers | None, quadratic: Numbers | None, check: bool
) -> tuple[Fluid, ...]:
    """() if nothing is given, else the one Fluid. Raises ShapeError, and ModelError for what would give off energy."""
    if added is None and drag is None and quadratic is None:
        return ()
    M = _matrix(f"{where}: added_inertia", added)
    D = _matrix(f"{where}: drag", drag)
    d = np.diag(_matrix(f"{where}: quadratic_drag", quadratic, only_diagonal=True))
    if not np.allclose(M, M.T, rtol=0, atol=1e-9 * max(1.0, np.abs(M).max())):
        raise ShapeError(f"{where}: added_inertia is not symmetric; give both halves of what the fluid adds")
    problems = []
    for what, matrix in (("added_inertia", M), ("drag", D), ("quadratic_drag", np.diag(d))):
        least = np.linalg.eigvalsh(0.5 * (matrix + matrix.T)).min()
        if check and least < -1e-9 * max(1.0, np.abs(matrix).max()):
            problems.append(f"{what} has the negative eigenvalue {least:.4g}; a fluid takes energy, it gives none")
    if problems:
        raise ModelError(where, problems)
    return (Fluid(0.5 * (M + M.T), D, d),)


def _matrix(what: str, given: Any, only_diagonal: bool = False) -> Array:
    if given is None:
        return np.zeros((6, 6))
    x = as_floats(what, given)
    if not are_sane(x):
        raise ShapeError(f"{what}: got {np.asarray(x).tolist()}, expected finite numbers")
    if x.shape == (6,):
        return np.diag(x)
    if x.shape != (6, 6) or only_diagonal:
        sizes = "(6,)" if only_diagonal else "(6, 6), or (6,) for a diagonal"
        raise ShapeError(f"{what}: got shape {x.shape}, expected {sizes}, [angular; linear] in the link's frame")
    return x


def in_fluid(robot: Any) -> bool:
    """Whether a fluid acts on a body that moves."""
    return any(b.inertia.fluid for b in robot.bodies)


def refuse_fluid(what: str, robot: Any) -> None:
    """Raise ModelError where a fluid acts on a body of the robot, which `what` does not count."""
    bodies = [b.name for b in robot.bodies if b.inertia.fluid]
    if bodies:
        problem = f"{what} does not count what a fluid does to {', '.join(bodies)}; leave out added_inertia "
        raise ModelError(robot.name, [problem + "(<fluid_added_mass> of SDF) and drag"])


def refuse_linear_drag(what: str, robot: Any) -> None:
    """Raise ModelError where a body has drag in proportion to its twist."""
    bodies = [b.name for b in robot.bodies if any(x.drag.any() for x in b.inertia.fluid)]
    if bodies:
        problem = f"{what} takes torques for quadratic in the speed, besides those at rest, and so does not count the "
        raise ModelError(
            robot.name, [problem + f"linear drag of {', '.join(bodies)}; leave it out, or limits of torques"]
        )
