"""What a Problem is at one revision of it, as a value that never changes: all that its stages are made of.

Problem.description gives it. Transcription, checks, model-predictive control and sweeps read this and nothing else of a
Problem but its Numbers: guesses and the values of fixed ends, which decide no stage, and are read at every solve.
Bounds of states and controls are given where these are made and never change, so they are part of the description.
"""

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..errors import ShapeError


@dataclass(frozen=True, eq=False)
class Variable:
    """A state or control: symbol, bounds and scale (n,), and whether the scale was given. Of a state that is a point of
    a manifold, manifold: a Manifold, and goal: symbol of a parameter (n,), where goal fixes its end by numbers."""

    name: str
    symbol: ca.MX
    lower: np.ndarray
    upper: np.ndarray
    scale: np.ndarray
    scaled: bool = False
    manifold: Any = None
    goal: Any = None

    @property
    def size(self):
        """Number of rows."""
        return self.symbol.numel()

    @property
    def rate_size(self):
        """Number of rows of its rate."""
        return self.size if self.manifold is None else self.manifold.tangent_size


@dataclass(frozen=True, eq=False)
class Constraint:
    """An expression and its bounds, what messages call it, and whether it means something at nodes alone. fraction: of
    a phase's intervals, where it holds at one node of it alone."""

    expression: ca.MX
    lower: np.ndarray
    upper: np.ndarray
    name: str = ""
    of_nodes: bool = False
    fraction: float | None = None

    def bounds_of(self, changed):
        """(lower, upper) from {name of a constraint: what its bounds were changed to}."""
        if self.name in changed:
            return changed[self.name]
        whole, _, place = self.name.rpartition("[")  # one of scalars()
        if whole in changed and place[:-1].isdigit() and self.lower.size == 1:
            return tuple(bound[[int(place[:-1])]] for bound in changed[whole])
        return self.lower, self.upper

    def with_bounds(self, changed):
        """The same with its bounds of bounds_of."""
        lower, upper = self.bounds_of(changed)
        return replace(self, lower=lower, upper=upper)

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
    """Duration of a phase [s]: a number or, where it is free, a symbol; its bounds. nominal: what it is scaled by.

    Where stages are reused for other durations, nominal and nominal_step, the length of an interval of it, are symbols
    of parameters, and value is nominal times `relative`, a symbol where it is free."""

    value: object
    bounds: tuple
    free: bool
    nominal: object = None
    nominal_step: object = None
    relative: object = None

    @property
    def symbol(self):
        """That of the unknown, where the duration is free."""
        return self.value if self.nominal_step is None else self.relative

    def mean_step(self, share):
        """Length of an interval that takes a share of the duration."""
        return self.value * share if self.nominal_step is None else self.nominal_step * self.relative


@dataclass(frozen=True, eq=False)
class Within:
    """A constraint at a fraction `share` of every interval, or of the last one alone.

    label: (name, place) that tells it apart, the same in Problems that differ in other constraints. fixed: None, or how
    many derivatives of a chain at the (start, end) of the interval decide it, see bernstein.py.
    """

    constraint: Constraint
    share: float
    last: bool
    label: tuple
    fixed: tuple | None = None


@dataclass(frozen=True, eq=False)
class BernsteinChain:
    """A chain whose unknowns are scaled Taylor coefficients of its intervals; see bernstein.py. All symbols.

    coefficients: of the unknowns, lowest order first, the last a control. outputs: [q, dq, ...]. The others are
    parameters: origin, what q is counted from; scales of the coefficients; units of the bounded derivatives, by order;
    rates: derivatives 1 .. order - 1 at (start, goal). reach (size,): typical distance, or None. bounded: which of q,
    dq, ... have bounds, (order + 1, size).
    """

    name: str
    coefficients: tuple
    outputs: tuple
    origin: ca.MX
    scales: tuple
    units: MappingProxyType
    rates: tuple
    reach: object
    bounded: np.ndarray

    @property
    def order(self):
        """The highest derivative of q among the outputs."""
        return len(self.outputs) - 1

    @property
    def size(self):
        """Number of rows of q."""
        return self.origin.numel()

    @property
    def names(self):
        """Names of q and its derivatives."""
        return [s.name() for s in self.outputs]

    @property
    def parameters(self):
        """Symbols that have values at every solve, in the order of bernstein.values."""
        return [self.origin, *self.scales, *self.units.values(), *self.rates[0], *self.rates[1]]


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
    a state. shares: of the phase's duration that its intervals take, None for equal ones."""

    nodes: int
    number: int
    rates: MappingProxyType = field(default_factory=_none)  # time derivatives
    steps: MappingProxyType = field(default_factory=_none)  # values at the next node
    rows: tuple = ()  # Constraints
    integrals: tuple = ()
    squares: tuple = ()
    within: tuple = ()  # Within
    sums: tuple = ()  # (cost rate, interior points): integrals by a Gauss-Lobatto rule
    means: tuple = ()  # costs that are averaged over the intervals, each counted with its share
    join: MappingProxyType = field(default_factory=_none)  # values at the start of the next phase
    node_rows: tuple = ()  # Constraints that hold at one node each
    shares: tuple | None = None

    @property
    def lengths(self):
        """(nodes,) share of the phase's duration that each interval takes."""
        return np.full(self.nodes, 1 / self.nodes) if self.shares is None else np.array(self.shares)

    @property
    def breakpoints(self):
        """(nodes + 1,) share of the phase's duration that has passed at its nodes, the end included."""
        if self.shares is None:
            return np.arange(self.nodes + 1) / self.nodes
        passed = np.cumsum(self.shares)
        return np.concatenate([[0.0], passed[:-1], [1.0]])

    def node(self, fraction):
        """Number of the node at a fraction of the phase's duration."""
        at = self.breakpoints[:-1]
        k = int(np.argmin(np.abs(at - fraction)))
        if not 0 <= fraction < 1 or abs(at[k] - fraction) > 1e-6 * self.lengths.min():
            near = np.unique(np.clip(np.searchsorted(at, fraction, "right") - [1, 0], 0, self.nodes - 1))
            told = " and ".join(f"{x:.6g}" for x in at[near])
            raise ShapeError(
                f"at: {fraction:.6g} is no node of a phase with {self.nodes} intervals; the nearest fractions are "
                f"{told} (its end is the start of the next phase, or the goal)"
            )
        return k

    def on(self, nodes, shares):
        """The same on other intervals."""
        return replace(self, nodes=nodes, shares=shares)

    def with_state(self, what, number, expression):
        """The same with a rate, step or join of a state; a rate replaces a step of it, and a step a rate."""
        given = {what: MappingProxyType({**getattr(self, what), number: expression})}
        other = {"rates": "steps", "steps": "rates"}.get(what)
        if other:
            given[other] = MappingProxyType({k: x for k, x in getattr(self, other).items() if k != number})
        return replace(self, **given)

    def held(self, states):
        """Numbers of the states that are stepped by themselves, so that their values are known between nodes too."""
        return [k for k, following in self.steps.items() if ca.is_equal(following, states[k].symbol)]

    def with_more(self, what, *added):
        """The same with more rows, integrals or squares."""
        return replace(self, **{what: (*getattr(self, what), *added)})


@dataclass(frozen=True, eq=False)
class Description:
    """A Problem as it was when it was taken; see the module.

    share: symbol, of its phase's duration that an interval takes, so that stages do not depend on the number of
    intervals. ahead: symbol, zero; marks what is said at a node of a later time in its interval. chains: [q, dq, ...]
    of each; splines: control points of each. fixed: {"start": names of the states that have a value there, "goal": the
    same}. named: {name: expression} of what chains and bodies have besides states and controls. repeated: (what, number
    of a state or control, expression) that is said in every phase: a variable is a state that is stepped by itself,
    time one of rate 1. start_time [s]: where time begins, if no state tells it.
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
    named: MappingProxyType
    bernstein: tuple = ()
    relative_length: object = None  # symbol: length of an interval over what its share gives, an unknown of a free mesh
    repeated: tuple = ()
    start_time: float = 0.0
    stages: dict = field(default_factory=dict, repr=False)  # kinds of stages that were built, shared by descriptions
    # that differ in their numbers of intervals alone

    @property
    def of_nominal(self):
        """Whether lengths of a free mesh are those over an equal share of the nominal duration, which is a number."""
        return len(self.phases) == 1 and self.phases[0].shares is None and not self.durations[0].free

    @property
    def free_time(self):
        """Whether the duration of a phase is an unknown."""
        return any(d.free for d in self.durations) or self.relative_length is not None

    @property
    def places(self):
        """(N + 1,) where the nodes are from 0 to 1, as guesses count: of all intervals so many have passed. On a mesh
        of one's own it is as if they were as long as on average in their phase; in one phase it is the share of the
        time."""
        total, first, out = sum(phase.nodes for phase in self.phases), 0, []
        for phase in self.phases:
            out.append(first + (np.arange(phase.nodes) if phase.shares is None
                                else phase.breakpoints[:-1] * phase.nodes))  # fmt: skip
            first += phase.nodes
        return np.concatenate([*out, [total]]) / total

    @property
    def time(self):
        """Number of the state that is the time, or None."""
        return next((number for what, number, _ in self.repeated if what == "rates"), None)

    @property
    def hidden(self):
        """Parameters that no caller gives: those of chains, durations of stages that are reused, goals on manifolds."""
        durations = [s for d in self.durations if d.nominal_step is not None for s in (d.nominal, d.nominal_step)]
        goals = [v.goal for v in self.states if v.manifold is not None]
        return [s for chain in self.bernstein for s in chain.parameters] + durations + goals

    def length(self, phase):
        """Expression: the length of an interval of a phase."""
        mean = self.durations[phase].mean_step(self.share)
        return mean if self.relative_length is None else mean * self.relative_length

    @property
    def parameter_names(self):
        """Names of the parameters, those that vary along the nodes behind the others."""
        return [p.name for p in (*self.parameters, *self.varying)]


@dataclass(eq=False)
class Numbers:
    """What a Problem reads at every solve: {name of a state or control: guess}, {name of a state: (n,) value}, {name of
    a limit or output of a chain: (lower, upper)}, {number of a phase: (nominal duration, lower, upper)}."""

    guess: dict = field(default_factory=dict)
    start: dict = field(default_factory=dict)
    goal: dict = field(default_factory=dict)
    bounds: dict = field(default_factory=dict)
    durations: dict = field(default_factory=dict)

    def copy(self):
        """The same, to be changed by itself."""
        return Numbers(*(dict(x) for x in (self.guess, self.start, self.goal, self.bounds, self.durations)))
