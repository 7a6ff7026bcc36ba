"""Time derivatives of an expression by automatic differentiation along the jet of its arguments."""

import casadi as ca

from ..subexpressions import merged

_EVERY = 3  # orders: duplicates of so many cost AD less than taking them out, which would be most of the time


def time_derivatives(expression, order, flow, cse, cse_follows=False):
    """[e, de, ..., d^order e] of a casadi expression; `flow` is a list of pairs (symbol, its time derivative).

    One jtimes per order, seeded with all time derivatives at once. cse: take common subexpressions out after each
    order, which keeps the growth polynomial instead of exponential; cse_follows: what is made of the
    derivatives passes cse once more, so that doing it now and then gives the same.
    """
    states = ca.vertcat(*(ca.vec(s) for s, _ in flow))
    rates = ca.vertcat(*(ca.densify(ca.vec(r)) for _, r in flow))
    out = [expression]
    for k in range(1, order + 1):
        following = ca.jtimes(out[-1], states, rates)
        due = cse and (not cse_follows or (k % _EVERY == 0 and k < order))
        out.append(merged(following) if due else following)
    return out
