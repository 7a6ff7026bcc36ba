"""Names of the unknowns and rows of the nonlinear program of a Problem: what each stands for, of which phase and node,
and how its number becomes the value of what it is called."""

from dataclasses import dataclass
from math import factorial

import casadi as ca
import numpy as np

from . import bernstein
from .expression_text import expression_text


@dataclass(frozen=True)
class Label:
    """What an unknown or a row of a stage stands for.

    what: "bound", "limit", "dynamics", "step", "join", "start", "goal", "at", "duration", "mesh", "chain" or "norm".
    name: of the state, control or limit, with its row. scale, offset: its value is scale times the number of the
    program, plus offset. share: of the interval where it is, None within it. unit: what a violation is measured by,
    None for its own bound.
    """

    what: str
    name: str
    scale: float = 1.0
    offset: float = 0.0
    share: float | None = 0.0
    unit: float | None = None


class ProgramNames:
    """Labels of the unknowns and rows of a Transcribed, made stage by stage as they are asked for."""

    def __init__(self, made):
        self.made, self.first = made, np.asarray(made.assembly.first)
        self.named = names_of_expressions(made.description)
        kinds = [g.kind for g in made.assembly.groups for _ in range(g.count)]
        self.kinds = kinds
        self.n_next = np.array([k.n_next for k in kinds])
        kept = [int((rows >= 0).sum()) for rows in made.assembly.stage_rows]
        self.first_row = np.concatenate([[0], np.cumsum(self.n_next + kept)])
        nodes, self.stretch_of = [], []
        for phase in made.phases:
            nodes += [(phase.number, k) for k in range(phase.nodes)]
        self.places = [*nodes, (made.phases[-1].number, made.phases[-1].nodes)]
        for stretch in made.stretches:
            self.stretch_of += [stretch] * stretch.count
        self.stretch_of.append(None)
        self._unknowns, self._rows, self._next = {}, {}, {}

    # -- which stage ------------------------------------------------------------------------------------------

    def unknown(self, number):
        """(Label, stage) of an unknown of the program."""
        stage = int(np.searchsorted(self.first, number, "right")) - 1
        return self.unknowns_of(stage)[number - self.first[stage]], stage

    def row(self, number):
        """(Label, stage) of a constraint of the program."""
        stage = int(np.searchsorted(self.first_row, number, "right")) - 1
        at = number - self.first_row[stage]
        if at < self.n_next[stage]:
            return self._dynamics(stage)[at], stage
        rows = self.made.assembly.stage_rows[stage]
        return self._labels_of_rows(stage)[int(np.flatnonzero(rows == number)[0])], stage

    def phase_and_node(self, stage):
        """(number of the phase, number of the node in it) of a stage."""
        return self.places[stage]

    # -- unknowns ---------------------------------------------------------------------------------------------

    def unknowns_of(self, stage):
        """Labels of the unknowns of a stage."""
        key = id(self.stretch_of[stage])
        if key not in self._unknowns:
            self._unknowns[key] = self._labels_of_unknowns(self.stretch_of[stage])
        return self._unknowns[key]

    def _labels_of_unknowns(self, stretch):
        made = self.made
        states, controls = self._variables(made.states), self._variables(made.controls)
        T = [Label("duration", self._duration(k), s, unit=s) for k, s in zip(made.times, made.T_scale, strict=True)]
        labels = [*states, *T]
        if made.nodal or stretch is not None:
            labels += controls
        for e in stretch.extras if stretch is not None else ():
            own = self._rated(made.phases[stretch.phase]) if e.like == "x" else controls
            labels += [Label(x.what, x.name, x.scale, x.offset, float(e.share), x.unit) for x in own]
        if made.free_mesh and stretch is not None:
            labels.append(Label("mesh", "relative length of the interval", unit=1.0))
        return labels

    def _variables(self, variables):
        known, out = self._of_chains(), []
        for v in variables:
            name, scale, offset = known.get(v.name, (v.name, v.scale, np.zeros(v.size)))
            out += [
                Label("bound", f"{name}[{i}]" if v.size > 1 else name, float(scale[i]), float(offset[i]),
                      unit=float(scale[i])) for i in range(v.size)
            ]  # fmt: skip
        return out

    def _of_chains(self):
        """{name of a Taylor coefficient of a bernstein chain: (name of the derivative it is of, scale, offset)}."""
        out = {}
        for c in self.made.chain_numbers:
            for j, s in enumerate(c.chain.coefficients):
                scale = c.scale[j] * factorial(j) / (c.T / c.N) ** j
                out[s.name()] = c.chain.names[j], scale, c.origin if j == 0 else np.zeros(c.chain.size)
        return out

    def _rated(self, phase):
        """Labels of what the method integrates: states with rates, or their steps on a manifold."""
        own = [self.made.states[k] for k in self.made.rated(phase)]
        labels = []
        for v in own:
            if v.manifold is None:
                labels += self._variables([v])
            else:
                scales = v.manifold.tangent_scale(v.scale)
                labels += [
                    Label("bound", f"step of {v.name}[{i}]", float(s), unit=float(s)) for i, s in enumerate(scales)
                ]
        return labels

    def _duration(self, phase):
        return f"phase {phase}" if len(self.made.phases) > 1 else "the motion"

    # -- rows -------------------------------------------------------------------------------------------------

    def _dynamics(self, stage):
        """Labels of the rows x_(k+1) - next_k of a stage."""
        number, node = self.places[stage]
        phase, made = self.made.phases[number], self.made
        joins = node == phase.nodes - 1 and number < made.phases[-1].number
        key = number, joins
        if key in self._next:
            return self._next[key]
        labels = []
        for k, v in enumerate(made.states):
            what = "join" if joins and k in phase.join else "step" if k in phase.steps else "dynamics"
            labels += [Label(what, x.name, x.scale, unit=x.unit, share=1.0) for x in self._variables([v])]
        labels += [Label("duration", f"{self._duration(k)} (one for all nodes)", s, unit=s, share=1.0)
                   for k, s in zip(made.times, made.T_scale, strict=True)]  # fmt: skip
        if made.nodal:
            labels += [Label("dynamics", x.name, x.scale, unit=x.unit, share=1.0)
                       for x in self._variables(made.controls)]  # fmt: skip
        self._next[key] = labels
        return labels

    def _labels_of_rows(self, stage):
        blocks = self.made.row_blocks[stage]
        key = id(blocks), self.places[stage][0]
        if key not in self._rows:
            points = self._at_points(blocks, stage)
            self._rows[key] = [
                label for k, block in enumerate(blocks) for label in self._labels_of_block(block, stage, k in points)
            ]
        return self._rows[key]

    def _at_points(self, blocks, stage):
        """Numbers of the blocks that hold at points of the method, in front of those of the node."""
        if self.stretch_of[stage] is None:
            return range(0)
        phase = self.made.phases[self.places[stage][0]]
        others = sum(bool(b.where) or b.decided is not None for b in blocks)
        return range(1, len(blocks) - others - len(self.made.parts_of[phase.number].rows) - len(phase.node_rows))

    def _labels_of_block(self, block, stage, at_point):
        made = self.made
        if block.constraint is None:
            return self._without_constraint(block, made.phases[self.places[stage][0]])
        row = block.constraint
        own = next((v for v in made.states if not row.name and _is_bound_of(row, v)), None)
        if own is not None:
            return [Label(x.what, x.name, x.scale, x.offset, None, x.unit) for x in self._variables([own])]
        what = self._what(block)
        chain = next((c for c in made.description.bernstein if row.name in c.names), None)
        if chain is not None and block.decided is not None:
            order = chain.names.index(row.name)
            scale = bernstein.unit(*made.numbers.bounds[row.name]) if order else np.ones(chain.size)
            which = np.flatnonzero(chain.bounded[order])
            suffix = [f"[{i}]" if chain.size > 1 else "" for i in which]
            return [Label("bound", f"{row.name}{s}", float(scale[i]), share=None)
                    for i, s in zip(which, suffix, strict=True)]  # fmt: skip
        share = None if block.decided is not None or at_point else 0.0
        return [Label(what, name, share=share) for name in self._names_of(row)]

    def _what(self, block):
        """What kind of row a block is of."""
        row, d = block.constraint, self.made.description
        if row.fraction is not None:
            return "at"
        if block.where:
            return block.where if any(row is r for r in d.start_rows) else "norm"
        return "goal" if any(row is r for r in d.goal_rows) else "limit"

    def _names_of(self, row):
        name, size = row.name.removeprefix("start of ").removeprefix("goal of "), row.lower.size
        if not name or name.startswith("["):
            whole = ca.vec(row.expression)
            return [expression_text(whole[i], named=self.named) for i in range(size)]
        return [f"{name}[{i}]" if size > 1 else name for i in range(size)]

    def _without_constraint(self, block, phase):
        """Labels of the rows of the method, which are zero, or of the ends of a chain."""
        if block.chain is not None:
            return [Label(block.where, f"{block.label[0]}[{i}]") for i in range(block.size)]
        own = self._rated(phase)
        if not own or block.size % len(own):
            return [Label("dynamics", "the method", share=None, unit=1.0)] * block.size
        return [Label("dynamics", x.name, x.scale, share=None, unit=x.unit) for x in own] * (block.size // len(own))


def names_of_expressions(description):
    """{hash: name} of the expressions that have a name, as the torques of a rigid_body."""
    return {x.__hash__(): name for name, x in description.named.items() if not x.is_symbolic()}


def _is_bound_of(row, v):
    """Whether a row is what a transcription makes of the bounds of a state at the points of a method."""
    if row.lower.size != v.size or not np.array_equal(row.lower, v.lower / v.scale):
        return False
    return np.array_equal(row.upper, v.upper / v.scale) and ca.is_equal(row.expression, v.symbol / v.scale, 3)
