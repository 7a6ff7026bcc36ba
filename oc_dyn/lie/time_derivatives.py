"""Time derivatives of an expression by automatic differentiation along the jet of its arguments."""

import casadi as ca


def time_derivatives(expression, order, flow, cse):
    """[e, de, ..., d^order e] of a casadi expression; `flow` is a list of pairs (symbol, its time derivative).

    One jtimes per order, seeded with all time derivatives at once. `cse`: take common subexpressions out after
    each order, which keeps the growth polynomial instead of exponential.
    """
    states = ca.vertcat(*(ca.vec(s) for s, _ in flow))
    rates = ca.vertcat(*(ca.densify(ca.vec(r)) for _, r in flow))
    out = [expression]
    for _ in range(order):
        following = ca.jtimes(out[-1], states, rates)
        out.append(ca.cse(following) if cse else following)
    return out
