"""What plan_elastic is asked for."""

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..numbers import as_floats
from ..planning.limits import Limits
from ..planning.obstacles import Obstacles
from ..planning.quantities import RATES
from ..planning.trajectory import Trajectory
from ..scene import Scene
from .electrical import MotorElectrics
from .plan_outputs import OUTPUTS, flat_outputs
from .plan_stiffness import StiffnessBounds


@dataclass(frozen=True, eq=False)
class ElasticTask:
    """What is asked of plan_elastic. given: {limit of motors and springs: (n,)}.

    ends: [start, goal], those that are given. kind: "rest" for a motion from rest to rest, "free" for one from rest
    whose end is free, "periodic". speed: Function (q, v) -> what is largest at the end. say: function (problem, flat)
    that says more. stiffness: bounds of planned stiffnesses; sigma: those held constant, or guessed.
    near: None, or a Scene whose pairs the links keep apart by (P,) [m], of Obstacles `around`. way (k, n), or known, a
    Trajectory, or begun, (duration, derivatives at the nodes): where the search begins, None for by itself.
    """

    elastic: Any
    ends: list
    continuity: int
    rate: bool
    given: dict
    limits: Limits
    objective: str
    duration: float | None
    sigma: np.ndarray | None
    nodes: int
    interior: int
    derivatives: str
    kind: str = "rest"
    electrical: MotorElectrics | None = None
    stiffness: StiffnessBounds | None = None
    speed: ca.Function | None = None
    say: Any = None
    near: Scene | None = None
    apart: np.ndarray | None = None
    way: np.ndarray | None = None
    known: Trajectory | None = None
    around: Obstacles | None = None
    begun: tuple | None = None

    @property
    def jets(self):
        """[sigma, 0, ...], None where no stiffness varies."""
        return None if self.sigma is None else [self.sigma] + [np.zeros_like(self.sigma)] * (2 + self.rate)

    def outputs(self, derivatives):
        """Outputs of the flat map at derivatives of q (K, n), of springs without their dampers."""
        jets = self.jets and [np.tile(x, (len(derivatives[0]), 1)) for x in self.jets]
        return flat_outputs(self.elastic, derivatives, int(self.rate), jets, electrical=self.electrical)

    @property
    def of_links(self):
        """{quantity: (order of the derivative of q, (lower, upper))} of the links' finite limits."""
        found = {name: (k, self.limits.bounds(name)) for k, name in enumerate(RATES, 1)}
        return {name: x for name, x in found.items() if np.isfinite(x[1]).any()}

    @property
    def margins(self):
        """{quantity: what its limits are multiplied by}, all 1, of everything that is limited."""
        sizes = {OUTPUTS[k]: len(x) for k, x in self.given.items()}
        names = [*sizes, *self.of_links]
        names += ["q"] * bool(np.isfinite(self.limits.q).any()) + ["v_of_q"] * (self.limits.v_of_q is not None)
        return {name: np.ones(sizes.get(name, self.elastic.nv)) for name in names}

    def grid(self, motion):
        """Step [s] at which limits are looked at."""
        return min(5e-4, motion.duration / self.nodes / 16)


def limit_of(what, value, names):
    """(n,) limit of motors or springs, None for none."""
    if value is None:
        return None
    value = as_floats(what, value).ravel()
    if value.size not in (1, len(names)) or not np.all(value > 0):
        raise ShapeError(
            f"{what}: got {value.tolist()}, expected a positive number, or {len(names)}: {', '.join(names)}"
        )
    return np.array(np.broadcast_to(value, len(names)))
