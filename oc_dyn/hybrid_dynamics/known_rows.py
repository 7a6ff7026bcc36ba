"""Solving M a + h = tau where some rows of a are known and the others of tau: by a factorised block of the mass
matrix, or by articulated inertias that pass joints of known motion on as they are."""

import casadi as ca

from ..forward_dynamics.mass_solver import articulated_cost, by_articulated, factor_reversed, solve_reversed
from ..matrices.composite import composite


def known_rows(model, q, known):
    """Function (h, a, tau) -> (a, tau), all (nv,), that completes a and tau; what is given in rows that are not known
    does not count. Long chains and large trees take articulated inertias, cost O(n)."""
    if "mimic" in model.robot.features or _block_cost(model, known) < articulated_cost(model):
        return by_block(composite(model, q), known)
    return by_articulated(model, q, known)


def _block_cost(model, known):
    """Instructions, roughly, of the mass matrix and the factors of its block, counted as in forward_dynamics."""
    cost = 40 * model.n
    for i in model.bodies:
        above = model.support(i)[:-1]
        cost += 16 * sum(model.coordinates[j][3] for j in above)
        if model.coordinates[i][2] not in known:
            free = sum(model.coordinates[j][3] for j in above if model.coordinates[j][2] not in known)
            cost += free * free + free
    return cost


def by_block(M, known):
    """As known_rows, by the factors of the block of M (nv, nv) that is not known."""
    nv, known = M.shape[0], list(known)
    wanted = [k for k in range(nv) if k not in known]
    factors = factor_reversed(M[wanted, wanted]) if wanted else None

    def complete(h, a, tau):
        if known:
            h = h + M[:, known] @ a[known]
        x = solve_reversed(factors, tau[wanted] - h[wanted]) if wanted else ca.DM.zeros(0, 1)
        if known and wanted:
            h = h + M[:, wanted] @ x
        place = {row: k for k, row in enumerate(wanted)}
        return (
            ca.vertcat(ca.DM.zeros(0, 1), *(x[place[k]] if k in place else a[k] for k in range(nv))),
            ca.vertcat(ca.DM.zeros(0, 1), *(tau[k] if k in place else h[k] for k in range(nv))),
        )

    return complete
