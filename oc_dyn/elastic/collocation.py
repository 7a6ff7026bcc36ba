"""Implicit integration in fixed steps by collocation: for use inside optimisation, and for stiff springs.

Radau points give order 2 degree - 1 and damp what is too fast for the step; Legendre (Gauss) points give order 2 degree
and keep the energy of linear oscillations.
"""

from __future__ import annotations

import casadi as ca

from ..errors import ShapeError

SCHEMES = ("radau", "legendre")


def collocation_equations(rates: ca.Function, degree: int = 3, scheme: str = "radau") -> ca.Function:
    """casadi.Function (t, x, X, h, p) -> (defects (n, degree), x_end (n,)): one step for direct collocation.

    rates: casadi.Function (t, x (n,), p) -> dx. X (n, degree): states at the collocation points, unknowns of the
    optimisation; the defects are zero where X' = rates at these points. They are scaled as states, by h.
    """
    points = ca.collocation_points(_degree(degree), _scheme(scheme))
    C, D, _ = ca.collocation_coeff(points)
    n, m = rates.size1_in(1), rates.size1_in(2)
    t, h = ca.MX.sym("t"), ca.MX.sym("h")
    x, X, p = ca.MX.sym("x", n), ca.MX.sym("X", n, degree), ca.MX.sym("p", m)
    states = ca.horzcat(x, X)
    f = ca.horzcat(*(rates(t + c * h, X[:, i], p) for i, c in enumerate(points)))
    return ca.Function(
        "collocation",
        [t, x, X, h, p],
        [states @ C - h * f, states @ D],
        ["t", "x", "X", "h", "p"],
        ["defects", "x_end"],
    )


def collocation_step(rates: ca.Function, degree: int = 3, scheme: str = "radau", steps: int = 1) -> ca.Function:
    """casadi.Function (t, x, h, p) -> x_next at t + h in so many equal steps, its equations solved by Newton's method.

    Differentiable by the implicit function theorem; rates as in collocation_equations.
    """
    equations = collocation_equations(rates, degree, scheme)
    n, m = rates.size1_in(1), rates.size1_in(2)
    t, h, x, p = ca.MX.sym("t"), ca.MX.sym("h"), ca.MX.sym("x", n), ca.MX.sym("p", m)
    X = ca.MX.sym("X", n * degree)
    defects, end = equations(t, x, ca.reshape(X, n, degree), h, p)
    problem = ca.Function("problem", [X, t, x, h, p], [ca.vec(defects), end])
    solve = ca.rootfinder("solve", "newton", problem, {"abstol": 1e-13, "max_iter": 30})
    state = x
    for i in range(int(steps)):
        _, state = solve(ca.repmat(state, degree, 1), t + i * h / steps, state, h / steps, p)
    return ca.Function("collocation_step", [t, x, h, p], [state], ["t", "x", "h", "p"], ["x_next"])


def _degree(degree: int) -> int:
    if isinstance(degree, bool) or not isinstance(degree, int) or not 1 <= degree <= 9:
        raise ShapeError(f"collocation: degree is {degree!r}, expected an integer from 1 to 9")
    return degree


def _scheme(scheme: str) -> str:
    if scheme not in SCHEMES:
        raise ShapeError(f"collocation: scheme is {scheme!r}, expected one of {', '.join(SCHEMES)}")
    return scheme
