"""The flat map of an elastic robot on its feet: from its motion and the forces at its contacts, and these forces."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import casadi as ca

from ... import validation
from ...function import function
from ...kinematics.contact import contact_wrenches
from ...lie.time_derivatives import time_derivatives
from ...ports import derivative_name
from ...subexpressions import merged
from ..model import ElasticRobot, columns
from .flatness import base_map, check_floating, check_full_rank, contact_names

_SINGULAR = 1e-12  # of the largest pivot of G G^T


def contact_flat_map(elastic: ElasticRobot, contacts: Sequence[str], order: int = 0, method: str | None = None) -> Any:
    """casadi.Function (q, v, .. d3v, f, df, d2f) -> theta, dtheta, d2theta, tau_m, tau_base: elastic_flat_map with
    forces at points in contact.

    f (3, k) [N]: on the origins of the frames `contacts`, in root axes, of which df, d2f are time derivatives. order:
    of tau_m and tau_base; each needs one derivative more of everything. tau_base: what is missing in the base's
    equations, zero where motion and forces fit; theta and tau_m are exact only there.
    Raises OrderError for damped springs, ModelError, UnknownName.
    """
    check_floating("contact_flat_map", elastic)
    contacts = contact_names("contact_flat_map", contacts)
    flat = function(elastic, "elastic_flat_map", order=order, method=method, external_wrenches=True)
    names = [n for n in flat.name_in() if not n.endswith("w_ext")]
    x = {n: ca.SX.sym(n, *flat.size_in(n)) for n in names}
    forces = [ca.SX.sym(derivative_name("f", k), 3, len(contacts)) for k in range(3 + order)]
    w_ext = contact_wrenches(elastic.links, tuple(contacts))(x["q"], forces[0])
    along = _rates(elastic, w_ext, 2 + order, x["q"], [x[derivative_name("v", k)] for k in range(3 + order)], forces)
    shape = w_ext.shape
    wrenches = {derivative_name("w_ext", k): ca.reshape(w, *shape) for k, w in enumerate(along)}
    out = flat(**x, **wrenches)
    f = {derivative_name("f", k): y for k, y in enumerate(forces)}
    results = merged([ca.densify(out[n]) for n in flat.name_out()])
    inputs = {**x, **f}
    return ca.Function("contact_flat_map", list(inputs.values()), results, list(inputs), flat.name_out())


def contact_forces(elastic: ElasticRobot, contacts: Sequence[str], order: int = 2) -> Any:
    """casadi.Function (q, v, dv, .., wanted, dwanted, ..) -> f, df, ..: forces (3, k) on points in contact that fit the
    motion, and their time derivatives up to `order`.

    wanted (3, k) [N]: forces from which they differ least: their part that does nothing to the base stays as it is, so
    it chooses the internal forces. Equation: f = wanted + G^T (G G^T)^-1 (h_base - G wanted).
    Raises ModelError for contacts of which no forces fit every motion (rank below 6); at configurations that are
    singular, as feet in a line, results are not numbers.
    """
    check_floating("contact_forces", elastic)
    contacts = contact_names("contact_forces", contacts)
    order = validation.count("contact_forces: order", order)
    check_full_rank("contact_forces", elastic.links, elastic, contacts)
    q = ca.SX.sym("q", elastic.nq)
    V = [ca.SX.sym(derivative_name("v", k), elastic.nv) for k in range(order + 2)]
    wanted = [ca.SX.sym(derivative_name("wanted", k), 3, len(contacts)) for k in range(order + 1)]
    h = columns(function(elastic.links, "inverse_dynamics")(q, V[0], V[1]), elastic.unactuated)
    G = base_map(elastic, contacts)(q)
    factors = ca.ldl(ca.densify(G @ G.T), False)
    change = G.T @ ca.ldl_solve(h - G @ ca.vec(wanted[0]), *factors)
    regular = ca.mmin(factors[0]) > _SINGULAR * ca.mmax(factors[0])
    f = ca.if_else(regular, ca.vec(wanted[0]) + change, ca.DM.nan(change.shape[0]))
    found = _rates(elastic, f, order, q, V, wanted)
    outputs = merged([ca.densify(ca.reshape(x, 3, len(contacts))) for x in found])
    names = ["q", *(derivative_name("v", k) for k in range(order + 2))]
    names += [derivative_name("wanted", k) for k in range(order + 1)]
    results = [derivative_name("f", k) for k in range(order + 1)]
    return ca.Function("contact_forces", [q, *V, *wanted], outputs, names, results)


def _rates(elastic: ElasticRobot, value: Any, order: int, q: Any, V: Sequence[Any], forces: Sequence[Any]) -> list[Any]:
    """[value, its time derivatives] along a motion and forces."""
    flow = [(q, elastic.links.configuration_rate(q, V[0])), *pairwise(V)]
    flow += [(ca.vec(x), ca.vec(y)) for x, y in pairwise(forces)]
    return time_derivatives(ca.vec(value), order, flow, cse=True)
