"""What a Problem is at one revision of it, as a value that never changes: all that its stages are made of.

Problem.description gives it. Transcription, checks, model-predictive control and sweeps read this and nothing else of a
Problem but its Numbers: guesses and the values of fixed ends, which decide no stage, and are read at every solve.
Bounds of states and controls are given where these are made and never change, so they are part of the description.
"""

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple

import casadi as ca
import numpy as np


@dataclass(frozen=True, eq=False)
class Variable:
    """A state or control: symbol, bounds and scale (n,), and whether the scale was given."""

    name: str
    symbol: ca.MX
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray
    scaled: bool = False

    @property
    def size(self):
        return self.symbol.numel()


@dataclass(frozen=True, eq=False)
class Constraint:
    """An expression and its bounds, what messages call it, and whether it means something at nodes alone."""

    expression: ca.MX
    lower: np.ndarray
    upper: np.ndarray
    name: str = ""
    of_nodes: bool = False

    def scalars(self, name):
        """One constraint for every element, named after the whole."""
        if self.lower.size == 1:
            return [replace(self, name=name)]
        ends = zip(ca.vertsplit(self.expression), self.lower, self.upper, strict=True)
        return [Constraint(x, a[None], b[None], f"{name}[{i}]", self.of_nodes) for i, (x, a, b) in enumerate(ends)]


class Parameter(NamedTuple):
    """A parameter of the problem, or one that varies along the nodes."""

    name: str
    symbol: ca.MX


class Duration(NamedTuple):
    """Duration of a phase [s]: a number or, where it is free, a symbol; its bounds."""

    value: object
    bounds: tuple
    free: bool


@dataclass(frozen=True, eq=False)
class Body:
    """A robot whose q and v are stepped on the manifold by v' and forces f (3, k) at the origins of k frames."""

    robot: object
    frames: tuple
    q: ca.MX
    v: ca.MX
    dv: ca.MX
    f: ca.MX

    @property
    def quaternions(self):
        """Rows of q where a quaternion begins."""
        return [j.q_index for j in self.robot.joints if j.nq > j.nv]


def _none():
    return MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Phase:
    """Intervals of one part of the time, with the dynamics, limits and costs that hold there. Mappings are by number of
    a state."""

    nodes: int
    number: int
    rates: MappingProxyType = field(default_factory=_none)  # time derivatives
    steps: MappingProxyType = field(default_factory=_none)  # values at the next node
    rows: tuple = ()  # Constraints
    integrals: tuple = ()
    squares: tuple = ()
    join: MappingProxyType = field(default_factory=_none)  # values at the start of the next phase

    def with_state(self, what, number, expression):
        """The same with a rate, step or join of a state; a rate replaces a step of it, and a step a rate."""
        given = {what: MappingProxyType({**getattr(self, what), number: expression})}
        other = {"rates": "steps", "steps": "rates"}.get(what)
        if other:
            given[other] = MappingProxyType({k: x for k, x in getattr(self, other).items() if k != number})
        return replace(self, **given)

    def with_more(self, what, *added):
        """The same with more rows, integrals or squares."""
        return replace(self, **{what: (*getattr(self, what), *added)})


@dataclass(frozen=True, eq=False)
class Description:
    """A Problem as it was when it was taken; see the module.

    share: symbol, of its phase's duration that an interval takes, so that stages do not depend on the number of
    intervals. ahead: symbol, zero; marks what is said at a node of a later time in its interval. chains: [q, dq, ...]
    of each; splines: control points of each. fixed: {"start": names of the states that have a value there, "goal": the
    same}.
    """

    states: tuple
    controls: tuple
    parameters: tuple
    varying: tuple
    durations: tuple
    phases: tuple
    share: ca.MX
    ahead: ca.MX
    start_rows: tuple
    goal_rows: tuple
    terminal: tuple
    chains: tuple
    splines: tuple
    bodies: tuple
    fixed: MappingProxyType

    @property
    def free_time(self):
        """Whether the duration of a phase is an unknown."""
        return any(d.free for d in self.durations)

    @property
    def parameter_names(self):
        """Names of the parameters, those that vary along the nodes behind the others."""
        return [p.name for p in (*self.parameters, *self.varying)]


@dataclass(eq=False)
class Numbers:
    """What a Problem reads at every solve: {name of a state or control: guess}, {name of a state: (n,) value}."""

    guess: dict = field(default_factory=dict)
    start: dict = field(default_factory=dict)
    goal: dict = field(default_factory=dict)
