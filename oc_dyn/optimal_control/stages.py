"""Stage functions: an optimal-control problem at one of its points in time, with first and second derivatives.

A stage has unknowns z = [x; u], its state and the rest, and gives the state of the stage behind it, rows that are
bounded, a cost, and residuals whose squares are costs. Kinds of stages are few, stages are many: derivatives are built
once a kind, as Functions, and evaluated for all its stages.
"""

from dataclasses import dataclass

import casadi as ca

from ..errors import ShapeError, UnknownName
from ..function_store import stored_with
from ..interrupts import check_building
from .registered_calls import unrolled
from .stage_derivatives import HESSIANS, Derivatives, derivatives

_INPUTS = ["z", "p", "s"]
_MULTIPLIERS = ["lam_cost", "lam_next", "lam_rows"]
_MOST = 4  # stages whose derivatives are kept, for the next one that is the same, as phases with equal contacts have
_made: dict[tuple, tuple] = {}


@dataclass(frozen=True, eq=False)
class Kind:
    """Functions of one kind of stage; z (nx + nu,), p parameters of the problem, s those of the stage.

    value: (z, p, s) -> next (n_next,), rows (ng,). jacobian: (z, p, s) -> J, sparse derivative of [next; rows] by z.
    cost: (z, p, s) -> cost. gradient: (z, p, s) -> that of the cost. hessian: (z, p, s, lam_cost, lam_next, lam_rows)
    -> upper triangle of the Hessian of lam_cost cost + lam_next' next + lam_rows' rows. gauss_newton: the same, with
    J_r' J_r for the residuals r and without the curvature of next and rows.
    """

    name: str
    nx: int
    nu: int
    value: ca.Function
    jacobian: ca.Function
    cost: ca.Function
    gradient: ca.Function
    hessian: ca.Function
    gauss_newton: ca.Function

    @property
    def n_next(self):
        """Number of states of the next stage that the dynamics give."""
        return self.value.size1_out(0)

    @property
    def ng(self):
        """Number of constraints."""
        return self.value.size1_out(1)

    def compiled(self, compiler):
        """The same with its Functions passed through `compiler`, as [Functions] -> [Functions]."""
        names = ("value", "jacobian", "cost", "gradient", "hessian", "gauss_newton")
        made = compiler([getattr(self, n) for n in names])
        return Kind(self.name, self.nx, self.nu, *made)


def kind(name, nx, nu, build, n_p=0, n_s=0, graph="sx", hessians=HESSIANS):
    """Kind of stage from build(x, u, p, s) -> {"next": (n_next,), "rows": (ng,), "cost": (), "residuals": (nr,)}.

    Entries left out are empty; the cost gains half the sum of squares of the residuals. graph: "sx" or "mx", the
    symbols that build is given. With "mx", derivatives registered with the Functions it calls are used, as those of
    od.function(..., derivatives="analytic"), and what comes out is written as SX where that is possible.
    hessians: those that are built; others are empty.
    """
    matrix = {"sx": ca.SX, "mx": ca.MX}[graph]
    z, p, s = matrix.sym("z", nx + nu), matrix.sym("p", n_p), matrix.sym("s", n_s)
    built = build(*ca.vertsplit(z, [0, nx, nx + nu]), p, s)  # a slice of one row may be 1x0
    unknown = sorted(set(built) - {"next", "rows", "cost", "residuals"})
    if unknown:
        raise UnknownName(f"entry of stage {name}", unknown[0], ("next", "rows", "cost", "residuals"))
    following, rows, residuals = (matrix(built.get(k, matrix(0, 1))) for k in ("next", "rows", "residuals"))
    cost = matrix(built.get("cost", 0))
    for what, y, shape in (("next", following, "(n, 1)"), ("rows", rows, "(n, 1)"), ("cost", cost, "(1, 1)")):
        if y.shape[1] != 1 or (what == "cost" and y.shape[0] != 1):
            raise ShapeError(f"stage {name}: {what} has shape {y.shape}, expected {shape}")
    following, rows, cost, residuals = (ca.densify(y) for y in (following, rows, cost, residuals))
    check_building()
    sizes = (1, following.numel(), rows.numel())
    whole = ca.Function(name, [z, p, s], [following, rows, cost, residuals])

    def scalar():
        parts = unrolled(whole)
        if parts is None:  # it calls something that has no scalar form
            return None
        return list(_functions(name, *_derivatives(parts, sizes, hessians)))

    functions = stored_with(whole, " ".join(("stage", *(() if hessians == HESSIANS else ("with", *hessians)))), scalar)
    if functions is None:
        lam = [matrix.sym(n, size) for n, size in zip(_MULTIPLIERS, sizes, strict=True)]
        made = _by_graph(following, rows, cost, residuals, z, lam, hessians)
        sparse = (False, True, False, False, True, True)
        functions = map(_written_out, _functions(name, [z, p, s], lam, made), sparse)
    return Kind(name, nx, nu, *functions)


def _functions(name, inputs, lam, made):
    """The Functions of a Kind in its order, of its inputs, multipliers and Derivatives."""
    for what, outputs, names in (
        ("value", [made.following, made.rows], ["next", "rows"]),
        ("jacobian", [made.jacobian], ["J"]),
        ("cost", [made.cost], ["cost"]),
        ("gradient", [made.gradient], ["grad_cost"]),
        ("hessian", [made.hessian], ["H"]),
        ("gauss_newton", [made.gauss_newton], ["H"]),
    ):
        more, more_names = (lam, _MULTIPLIERS) if what in ("hessian", "gauss_newton") else ([], [])
        yield ca.Function(f"{name}_{what}", [*inputs, *more], outputs, _INPUTS + more_names, names)


def _derivatives(parts, sizes, hessians):
    """(inputs, multipliers, Derivatives) of an Unrolled stage, those of an equal one where that was among the last."""
    ys, ws = [c.y for c in parts.calls], [c.w for c in parts.calls]
    flat = ca.Function("stage", [*parts.inputs, *ys], [*parts.outputs, *ws])
    # complete: all instructions and sizes of what is between calls, and the calls, which are kept with it
    key = (hessians, flat.serialize(), *(id(c.of) for c in parts.calls))
    found = _made.get(key)
    if found is None:
        lam = [ca.SX.sym(n, size) for n, size in zip(_MULTIPLIERS, sizes, strict=True)]
        found = _made[key] = parts.inputs, lam, derivatives(parts, lam, hessians), parts.calls
        for old in list(_made)[:-_MOST]:
            _made.pop(old, None)
    return found[:3]


def _by_graph(following, rows, cost, residuals, z, lam, hessians):
    """Derivatives as MX, by the derivatives that Functions have."""
    total = cost + ca.sumsqr(residuals) / 2 if residuals.numel() else cost
    curved = ca.dot(lam[1], following) + ca.dot(lam[2], rows)
    H = dict.fromkeys(HESSIANS, ca.MX(z.numel(), z.numel()))
    if "exact" in hessians:
        H["exact"] = _upper_hessian(lam[0] * total + curved, z)
    if "gauss_newton" in hessians:
        R = ca.jacobian(residuals, z)
        H["gauss_newton"] = ca.triu(lam[0] * (R.T @ R)) + _upper_hessian(lam[0] * cost, z)
    return Derivatives(
        following,
        rows,
        total,
        ca.jacobian(ca.vertcat(following, rows), z),
        ca.densify(ca.gradient(total, z)),
        *H.values(),
    )


def _upper_hessian(y, z):
    return ca.triu(ca.jacobian(ca.gradient(y, z), z, {"symmetric": True}))


def _written_out(f, sparse):
    """f as SX, which is evaluated faster, or as it is where that cannot be. sparse: drop zeros of the outputs."""
    try:
        f = f.expand()
    except RuntimeError:  # it calls something that has no SX form
        return f
    if not sparse:
        return f
    inputs = f.sx_in()
    outputs = [ca.sparsify(y) for y in f.call(inputs)]  # registered derivatives are asked for in dense blocks
    return ca.Function(f.name(), inputs, outputs, f.name_in(), f.name_out())
