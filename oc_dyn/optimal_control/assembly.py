"""A nonlinear program from stages: values, Jacobian and Hessian are put together from those of the kinds.

Unknowns are z_0, z_1, ..., z_N, constraints stage by stage: x_(k+1) - next_k = 0, then the rows that are kept. That is
the order solvers for this structure (fatrop) need. Derivatives reach the solver through the option `cache` of nlpsol:
blocks are evaluated with `map` and their entries placed by index, so nothing is differentiated for more stages.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..interrupts import derivative_watch, evaluation_watch
from .convexified import Convexified
from .stage_derivatives import HESSIANS

FAR = 1e30  # rows that are off by so much are not worth a step
SOLVERS = ("ipopt", "fatrop", "sqpmethod", "uno")  # that take our derivatives, see Assembly.cache; all are tested


@dataclass(frozen=True, eq=False)
class Group:
    """`count` stages of one kind in a row. keep (count, ng): which rows are constraints, all by default."""

    kind: object
    count: int
    keep: np.ndarray | None = None

    def kept(self):
        """(count, ng) bool: which rows are constraints."""
        shape = (self.count, self.kind.ng)
        keep = np.ones(shape, bool) if self.keep is None else np.asarray(self.keep, bool)
        if keep.shape != shape:
            raise ShapeError(f"stages {self.kind.name}: keep has shape {keep.shape}, expected {shape}")
        return keep


@dataclass(eq=False)
class Assembly:
    """The nonlinear program. nlp: {x, p, f, g}; dynamics (m,): which constraints are x_(k+1) - next_k = 0.

    stage_rows: for every stage the numbers (ng,) of its rows among the constraints, -1 where left out. first: number of
    the first unknown of every stage.
    """

    groups: list
    nlp: dict
    first: np.ndarray
    dynamics: np.ndarray
    stage_rows: list
    parts: dict = field(repr=False)
    convexified: object = field(default=None, repr=False)
    solvers: dict = field(default_factory=dict, repr=False)  # made for this program, by name and options

    @property
    def structure(self):
        """Options of nlpsol that tell fatrop of the stages, which it would find by itself in the square of their
        number."""
        kinds = [group.kind for group in self.groups for _ in range(group.count)]
        kept = [int(np.sum(rows >= 0)) for rows in self.stage_rows]
        sizes = {"nx": [k.nx for k in kinds], "nu": [k.nu for k in kinds], "ng": kept}
        equality = [bool(x) for x in self.dynamics]
        return {"structure_detection": "manual", "N": len(kinds) - 1, **sizes, "equality": equality}

    @property
    def size(self):
        """Numbers of unknowns and of constraints."""
        return self.nlp["x"].numel(), self.nlp["g"].numel()

    def parameters(self, p, s=None):
        """Values of the parameter of the program: p, then the parameters (n_s, stages) of the stages."""
        return np.concatenate([np.ravel(p), np.ravel(np.zeros(0) if s is None else s, order="F")])

    def opti(self, given):
        """The same program as a casadi.Opti, all derivatives by AD: what an Assembly is tested against. given: {p, lbx,
        ubx, lbg, ubg, x0}."""
        opti = ca.Opti()
        x, p = opti.variable(self.size[0]), opti.parameter(self.nlp["p"].numel())
        f = ca.Function("nlp", [self.nlp["x"], self.nlp["p"]], [self.nlp["f"], self.nlp["g"]])
        objective, g = f.call([x, p], True, False)
        opti.minimize(objective)
        for lower, value, upper in ((given["lbx"], x, given["ubx"]), (given["lbg"], g, given["ubg"])):
            used = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper)).tolist()
            opti.subject_to(opti.bounded(ca.DM(lower)[used], value[used], ca.DM(upper)[used]))
        opti.set_initial(x, given["x0"])
        opti.set_value(p, ca.DM(np.reshape(given["p"], (-1, 1))))
        return opti

    def cache(self, solver, hessian):
        """Functions by the names that nlpsol looks for; empty where the solver takes other ones."""
        x, p, g, f = (self.nlp[k] for k in ("x", "p", "g", "f"))
        lam_f, lam_g = self.parts["lam_f"], self.parts["lam_g"]
        J, gradient, H = self.parts["jacobian"], self.parts["gradient"], self.parts.get(hessian)
        if solver not in SOLVERS:
            return {}
        if hessian in HESSIANS and H is None:
            raise ShapeError(f"the program was built without its Hessian {hessian!r}; transcribe it with that one")
        xp, both = ["x", "p"], [x, p]
        made = {"nlp_f": ([f], ["f"]), "nlp_g": ([g], ["g"]), "nlp_jac_g": ([g, J], ["g", "jac_g_x"])}
        made["nlp_grad_f"] = ([f, gradient], ["f", "grad_f_x"])
        if solver == "fatrop":
            made["nlp_grad_f"] = ([_finite_only(gradient)], ["grad_f_x"])
            made["nlp_jac_g"] = ([g, _finite_only(J)], ["g", "jac_g_x"])
            # its line search asks for it in every phase, and gives up where none of its values is a number; of a step
            # to where derivatives overflow, which its watchdog would accept, it does not come back
            far = ca.if_else(ca.norm_inf(g) < FAR, 0, ca.inf)
            made["nlp_g"] = ([g + (evaluation_watch()(x[0]) + far)], ["g"])
        if solver == "sqpmethod":
            made = {"nlp_fg": ([f, g], ["f", "g"])}
            made["nlp_jac_fg"] = ([f, gradient, g, J], ["f", "grad_f_x", "g", "jac_g_x"])
        if solver == "uno":
            made |= {"nlp_jac_g": ([J], ["jac_g_x"]), "nlp_grad_f": ([gradient], ["grad_f_x"])}
        out = {n: ca.Function(n, both, e, xp, names) for n, (e, names) in made.items()}
        of_lagrangian = lam_f * gradient + ca.mtimes(J.T, lam_g)
        given, names = [x, p, lam_f, lam_g], ["x", "p", "lam_f", "lam_g"]
        # derivatives by the parameters are not known: solve() does not ask for their multipliers
        every = [f, g, of_lagrangian, ca.MX.zeros(*p.shape)]
        out["nlp_grad"] = ca.Function("nlp_grad", given, every, names, ["f", "g", "grad_gamma_x", "grad_gamma_p"])
        if H is not None:
            what = dict.fromkeys(("ipopt", "uno"), ([H], ["triu_hess_gamma_x_x"]))
            # it reads the first and makes no use of it: a third of the time of its Hessians
            unused = ca.DM.zeros(*x.shape)
            what["fatrop"] = ([unused, ca.triu2symm(_finite_only(H))], ["grad_gamma_x", "hess_gamma_x_x"])
            convex = ca.triu2symm(H)
            if hessian == "exact" and solver == "sqpmethod":
                if self.convexified is None:  # one for all solvers of this program, as they do not keep a Callback
                    self.convexified = Convexified(H.sparsity(), self.first)
                convex = self.convexified(H)
            what["sqpmethod"] = ([convex], ["hess_gamma_x_x"])
            expressions, outputs = what[solver]
            out["nlp_hess_l"] = ca.Function("nlp_hess_l", given, expressions, names, outputs)
            if solver == "uno":
                of_x = {"is_diff_in": [True, False, False, False]}  # it is differentiated by x alone
                out["nlp_grad_l"] = ca.Function("nlp_grad_l", given, [of_lagrangian], names, ["grad_gamma_x"], of_x)
        return out


def _finite_only(derivatives):
    """Derivatives, or zeros where one of them is no finite number, which ends fatrop at its next step."""
    entries = derivatives.nz[:]
    finite = derivative_watch()(ca.sum1(entries))
    return ca.MX(derivatives.sparsity(), ca.if_else(finite, entries, 0))


def assemble(groups, n_p=0, n_s=0, threads=1, hessians=HESSIANS):
    """Assembly of groups of stages; next of every stage but the last must have the size of the state behind it.

    n_p: size of the parameters of the problem, n_s: of those of each stage. threads: stages are evaluated by so many.
    hessians: those that stages were built with.
    """
    stages = [g.kind for g in groups for _ in range(g.count)]
    _check(groups, stages)
    sizes = np.array([k.nx + k.nu for k in stages])
    first = np.concatenate([[0], np.cumsum(sizes)])
    x = ca.MX.sym("x", int(first[-1]))
    p = ca.MX.sym("p", n_p + n_s * len(stages))
    common, own = p[:n_p], ca.reshape(p[n_p:], n_s, len(stages))
    numbers, dynamics = _numbers(groups, stages)
    m = int(sum(r.size for r in dynamics) + sum((r >= 0).sum() for r in numbers))
    lam_f, lam_g = ca.MX.sym("lam_f"), ca.MX.sym("lam_g", m)
    lam_rows = ca.vertcat(lam_g, 0)  # the last for rows that are left out
    f, start, collected = ca.MX(0), 0, _Collected()
    for group in groups:
        of, count = group.kind, group.count
        evaluated, span = _mapped(count, threads), range(start, start + count)
        z = ca.reshape(x[int(first[start]) : int(first[start + count])], of.nx + of.nu, count)
        inputs = [z, ca.repmat(common, 1, count), own[:, start : start + count]]
        following, rows = evaluated(of.value, *inputs)
        f = f + ca.sum2(*evaluated(of.cost, *inputs))
        collected.add("gradient", ca.vec(*evaluated(of.gradient, *inputs)))
        steps = np.concatenate([np.zeros(0, int), *(dynamics[k] for k in span)]).astype(int)
        kept = np.concatenate([numbers[k] for k in span]) if of.ng else np.zeros(0, int)
        if of.n_next:
            ends = np.concatenate([first[k + 1] + np.arange(of.n_next) for k in span])
            collected.add("g", x[ends.tolist()] - ca.vec(following), steps)
            collected.add("jacobian", ca.MX(ca.DM.ones(ends.size)), np.stack([steps, ends]))
        if np.any(kept >= 0):
            collected.add("g", ca.vec(rows)[np.flatnonzero(kept >= 0).tolist()], kept[kept >= 0])
        targets = [np.concatenate([dynamics[k], numbers[k]]).astype(int) for k in span]
        _add_jacobian(collected, of, count, *evaluated(of.jacobian, *inputs), targets, first[start : start + count])
        lam = [ca.MX(0, count)] * 2
        if of.n_next:
            lam[0] = -ca.reshape(lam_g[steps.tolist()], of.n_next, count)
        if of.ng:
            lam[1] = ca.reshape(lam_rows[np.where(kept >= 0, kept, m).tolist()], of.ng, count)
        for which, function in (("exact", of.hessian), ("gauss_newton", of.gauss_newton)):
            if function.nnz_out(0):
                (H,) = evaluated(function, *inputs, ca.repmat(lam_f, 1, count), *lam)
                _add_hessian(collected, which, H, function, first[start : start + count])
        start += count
    n = int(first[-1])
    sources, places = collected.sources, collected.places
    order = np.argsort(np.concatenate([np.zeros(0, int), *places["g"]]), kind="stable")
    g = ca.vertcat(ca.MX(0, 1), *sources["g"])[order.tolist()]
    parts = {
        "lam_f": lam_f,
        "lam_g": lam_g,
        "gradient": ca.densify(ca.vertcat(*sources["gradient"])),  # solvers read it as dense
        "jacobian": _sparse(m, n, sources["jacobian"], places["jacobian"]),
        **{which: _sparse(n, n, sources[which], places[which]) for which in hessians},
    }
    equality = np.zeros(m, bool)
    equality[np.concatenate([*dynamics, np.zeros(0, int)]).astype(int)] = True
    return Assembly(list(groups), {"x": x, "p": p, "f": ca.densify(f), "g": g}, first, equality, numbers, parts)


class _Collected:
    """Entries of the parts of a program, stages by stages: expressions, and where they belong."""

    def __init__(self):
        self.sources, self.places = defaultdict(list), defaultdict(list)

    def add(self, part, source, places=None):
        """A column of entries, and their numbers (k,), or rows and columns (2, k)."""
        self.sources[part].append(source)
        self.places[part].append(places)


def _add_jacobian(collected, of, count, J, targets, first):
    """Entries of -d next and d rows by z; targets: numbers of the constraints of a stage, -1 where left out."""
    row, column = (np.array(c, int) for c in of.jacobian.sparsity_out(0).get_triplet())
    if not row.size:
        return
    target = np.concatenate([t[row] for t in targets])
    columns = np.concatenate([k + column for k in first])
    use = np.flatnonzero(target >= 0)
    if use.size:
        sign = np.tile(np.where(row < of.n_next, -1.0, 1.0), count)[use]
        entries = _entries_of(J, of.jacobian, count)[use.tolist()] * ca.DM(sign)
        collected.add("jacobian", entries, np.stack([target[use], columns[use]]))


def _add_hessian(collected, which, H, function, first):
    """Entries of the blocks of stages that begin at the unknowns `first`."""
    row, column = (np.array(c, int) for c in function.sparsity_out(0).get_triplet())
    places = np.concatenate([np.stack([k + row, k + column]) for k in first], axis=1)
    collected.add(which, _entries_of(H, function, len(first)), places)


def _mapped(count, threads):
    """(Function, *inputs) -> its outputs for `count` stages side by side."""

    def evaluated(function, *inputs):
        if count > 1:
            function = function.map(count, "thread", threads) if threads > 1 else function.map(count)
        return function.call(inputs)

    return evaluated


def _check(groups, stages):
    for a, b in pairwise(stages):
        if a.n_next != b.nx:
            raise ShapeError(f"stage {a.name} gives a next state of {a.n_next}, stage {b.name} behind it has {b.nx}")
    if stages[-1].n_next:
        raise ShapeError(f"the last stage {stages[-1].name} gives a next state, but no stage is behind it")


def _numbers(groups, stages):
    """Numbers of the constraints: of the rows of each stage, -1 where left out, and of its dynamics."""
    kept = [row for g in groups for row in g.kept()]
    numbers, dynamics, at = [], [], 0
    for k, keep in zip(stages, kept, strict=True):
        dynamics.append(np.arange(at, at + k.n_next))
        at += k.n_next
        row = np.full(k.ng, -1)
        row[keep] = at + np.arange(keep.sum())
        at += int(keep.sum())
        numbers.append(row)
    return numbers, dynamics


def _entries_of(matrices, function, count):
    """Column of the stored entries of the first output of a Function for `count` stages side by side."""
    pattern = ca.repmat(function.sparsity_out(0), 1, count)  # where all are zero, CasADi drops them from the call
    return ca.vec(ca.project(matrices, pattern).nz[:])


def _sparse(rows, columns, sources, places):
    """Sparse MX (rows, columns) of the entries `sources` at `places`, (2, k) rows and columns each, no two alike."""
    if not sources:
        return ca.MX(rows, columns)
    row, column = np.concatenate(places, axis=1)
    order = np.lexsort((row, column))
    start = np.concatenate([[0], np.cumsum(np.bincount(column, minlength=columns))])
    pattern = ca.Sparsity(rows, columns, start.tolist(), row[order].tolist())
    return ca.MX(pattern, ca.vertcat(*sources)[order.tolist()])
