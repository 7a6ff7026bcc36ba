"""Second partials of hybrid dynamics, from those of inverse dynamics, by AD, and by differences of first partials.

A method is given a partials.Given of order 0 and returns [{by: tensor} of dv_f, of tau_p], by = ("q", "q"), ("v", "v"),
("q", "v"), ("dv_p", "q"), ("tau_f", "q"); tensors are kept as in tensor.py, the letters as they differentiate.
"""

import casadi as ca

from ..lie.jets import total
from ..model.robot import tangent_map
from ..partials.by_ad import inverse_partials, solved_partials
from ..partials.composite import composite_method
from ..partials.friction_terms import friction_curvature
from ..partials.implicit import mass_matrix, mass_solver
from ..partials.order_by_order import Given, on_symbols, rows_of_inverse, solved_rows
from ..partials.spatial_vector import spatial_vector as spatial_rows
from ..registry import method
from . import HYBRID_PAIRS
from .by_ad import ad_pure
from .composite import CANNOT, composite
from .spatial_vector import spatial_vector

_NAME = "hybrid_dynamics_second_partials"
_BLOCKS = "; solved by blocks as in Kim 2012, section 2"
_STEP = 1e-5


@method(
    _NAME, "composite", kind="analytic", source="this toolkit" + _BLOCKS, cannot=CANNOT, regroup=True
)  # fmt: skip
def by_composite(given):
    """Tensors; see od.describe("hybrid_dynamics_second_partials")."""
    return _solved(given, composite_method, composite)


@method(
    _NAME, "spatial_vector", kind="analytic", source="Singh et al. 2023" + _BLOCKS, cannot=CANNOT, regroup=True
)  # fmt: skip
def by_spatial_vector(given):
    """Tensors; see od.describe("hybrid_dynamics_second_partials")."""
    return _solved(given, spatial_rows, spatial_vector)


@method(_NAME, "ad_via_inverse", kind="ad", source="AD of inverse dynamics" + _BLOCKS, regroup=True)
def via_inverse(given):
    """Tensors; see od.describe("hybrid_dynamics_second_partials")."""
    return _solved(given, inverse_partials, ad_pure)


@method(_NAME, "ad", kind="ad", source="AD: Jacobians of the Jacobians of the method taylor", regroup=True)
def by_ad(given):
    """Tensors; see od.describe("hybrid_dynamics_second_partials")."""

    def tensors(at, _):
        out, step = [], tangent_map(at.model.robot, at.q)
        for ((by_q, by_v, by_a, by_t),) in solved_partials(at):
            first = {"q": by_q, "v": by_v, "dv_p": by_a, "tau_f": by_t}
            for a, b in HYBRID_PAIRS:
                y = ca.vec(first[a])
                out.append(ca.jacobian(y, at.q) @ step if b == "q" else ca.jacobian(y, at.v))
        return out

    return _named(given.at(tensors))


@method(
    _NAME,
    "finite_difference_2",
    kind="numeric",
    source="Singh et al. 2023, appendix A, eq. 57: central differences of first partials by AD",
    regroup=True,
    graph="mx",
    tolerance=1e-6,
    numeric_parameters="it makes a Function of the motion alone on the way",
)
def by_differences(given):
    """Tensors by central differences; see od.describe("hybrid_dynamics_second_partials")."""
    model, nv = given.model, given.model.robot.nv
    inputs = [given.q, given.v, given.A[0], given.T[0], *(given.W or [])]
    s = [ca.SX.sym("x", *x.shape) for x in inputs]
    at = Given(model, 0, s[0], s[1], [s[2]], [s[3]], given.prescribed, s[4:] or None, given.friction)
    first = ca.Function(
        "first", s, [ca.vec(ca.densify(x)) for rows in solved_partials(at) for x in rows[0]], {"cse": True}
    )
    step = model.robot.integrate_function()
    changes = {}
    for letter in "qv":
        columns = []
        for e in ca.horzsplit(_STEP * ca.DM.eye(nv)):
            ends = []
            for x in (e, -e):
                q, v = (step(given.q, x), given.v) if letter == "q" else (given.q, given.v + x)
                ends.append(first.call([q, v, *inputs[2:]]))
            columns.append([(a - b) / (2 * _STEP) for a, b in zip(*ends, strict=True)])
        changes[letter] = [ca.horzcat(*x) for x in zip(*columns, strict=True)]
    place = {"q": 0, "v": 1, "dv_p": 2, "tau_f": 3}
    return _named([changes[b][k * 4 + place[a]] for k in range(2) for a, b in HYBRID_PAIRS])


def _named(flat):
    """[{by: tensor} of dv_f, of tau_p] from all of them in a row."""
    flat = iter(flat)
    return [{by: next(flat) for by in HYBRID_PAIRS} for _ in range(2)]


def _solved(given, rows, tensors):
    """Tensors from those of inverse dynamics; rows, tensors: methods of its first and second partials.

    Equation:  M_ff a_f,xy = -(ID_xy + M_y a_x + M_x a_y)_f,  tau_p,xy = (the same)_p + M_pf a_f,xy,  M_v = 0
    """
    model, p, f = given.model, list(given.prescribed), given.free
    nv = model.robot.nv
    (a,), _ = given.solved()
    V = [given.v, a]
    M = mass_matrix(model, given.q)
    R = rows_of_inverse(given, V, rows)
    U = dict(zip(("q", "v", "dv_p", "tau_f"), solved_rows(R, M, given.prescribed)[0][0], strict=True))
    qq, vv, qv, dM = on_symbols(given, V, lambda q, V, W, _: tensors(model, 0, q, V, W)[0])
    if given.friction:
        vv = vv + _bend(model.robot, given.v)
    pages = [ca.reshape(page, nv, nv) for page in ca.horzsplit(dM, 1)]  # of dM/dq_k
    own = {("q", "q"): qq, ("v", "v"): vv, ("q", "v"): qv}
    solve, out = mass_solver(M[f, f]), [{}, {}]
    for x, y in HYBRID_PAIRS:
        columns = []
        for k in range(nv):
            terms = [] if (x, y) not in own else [ca.reshape(own[x, y][:, k], nv, nv)]
            if y == "q":
                terms.append(pages[k] @ U[x])
            if x == "q":
                terms.append(ca.horzcat(*(page @ U[y][:, k] for page in pages)))
            side = total(terms)
            found = -solve(side[f, :]) if f else ca.SX(0, side.shape[1])
            columns.append((found, side[p, :] + M[p, f] @ found))
        for what, parts in zip(out, zip(*columns, strict=True), strict=True):
            what[x, y] = ca.sparsify(ca.horzcat(*(ca.vec(ca.densify(z)) for z in parts)))
    return out


def _bend(robot, v):
    """(nv nv, nv) second partials of the friction torques by v twice."""
    nv = robot.nv
    places, values = [], []
    for i in range(nv):
        unit = ca.DM.zeros(nv)
        unit[i] = 1
        places.append((i + nv * i, i))
        values.append(friction_curvature(robot, [v], [unit])[0, 0][i, i])
    out = ca.SX(nv * nv, nv)
    for (r, c), x in zip(places, values, strict=True):
        out[r, c] = x
    return out
