"""Ways to turn rates into steps, for Problem.solve(method=...): what a stage gets besides its state and controls.

A method is a function (dynamics, cost, x, u, h, symbol) -> Step. dynamics(x, u) -> dx/dt and cost(x, u) -> cost rate
are casadi expressions of any x, u; h is the length of the interval; symbol(name, size) makes a further unknown.
Attributes of the function: `controls_are_states` if controls are values at nodes, False if left out; `order` of the
error of the states at nodes, by which Solution.check judges their defects, and which may be left out.
"""

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from ..validation import one_of


@dataclass(eq=False)
class Step:
    """following: state at the end of the interval. cost: integral over it. extra: further unknowns. rows: zero.

    guesses: for every unknown of `extra`, (what it is like: "x" or "u", share of the interval where). u_next: controls
    at the next node, where they are states. points: (share of the interval, x, u) where controls are free besides the
    nodes: their bounds, and limits that depend on them, hold there too. Between nodes and points controls are a
    polynomial through their values. quadrature: [(weight, x, u)] of the rule by which costs are integrated, the weights
    adding up to 1, for costs that are squares; None for the value at the start of the interval.
    """

    following: object
    cost: object
    extra: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    guesses: list = field(default_factory=list)
    u_next: object = None
    points: list = field(default_factory=list)
    quadrature: list | None = None


def rk4(dynamics, cost, x, u, h, symbol):
    """Classic Runge-Kutta step of order 4, u constant over the interval; exact for chains of up to four integrators."""
    k1 = dynamics(x, u)
    k2 = dynamics(x + h / 2 * k1, u)
    k3 = dynamics(x + h / 2 * k2, u)
    k4 = dynamics(x + h * k3, u)
    points = zip((1 / 6, 2 / 6, 2 / 6, 1 / 6), (x, x + h / 2 * k1, x + h / 2 * k2, x + h * k3), strict=True)
    rule = [(weight, y, u) for weight, y in points]
    integral = h * sum(weight * cost(y, u) for weight, y, u in rule)
    return Step(x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), integral, quadrature=rule)


def euler(dynamics, cost, x, u, h, symbol):
    """Explicit Euler step, of order 1."""
    return Step(x + h * dynamics(x, u), h * cost(x, u))


def collocation(degree=3):
    """Orthogonal collocation at `degree` Legendre points, u constant over the interval; of order 2 degree."""

    def step(dynamics, cost, x, u, h, symbol):
        tau = np.append(0, ca.collocation_points(degree, "legendre"))
        C, D, B = ca.collocation_coeff(tau[1:].tolist())
        inner = [symbol(f"x_{j}", x.numel()) for j in range(degree)]
        Z = ca.horzcat(x, *inner)
        slopes = Z @ C
        rows = [slopes[:, j] - h * dynamics(y, u) for j, y in enumerate(inner)]
        rule = [(float(B[j]), y, u) for j, y in enumerate(inner)]
        integral = sum(h * weight * cost(y, u) for weight, y, _ in rule)
        return Step(Z @ D, integral, inner, rows, [("x", float(t)) for t in tau[1:]], quadrature=rule)

    step.order = 2 * degree
    return step


def _by_nodes(midpoint):
    """Trapezoidal or Hermite-Simpson, u linear or quadratic between nodes: the controls of a node are states."""

    def step(dynamics, cost, x, u, h, symbol):
        following, u_next = symbol("x_next", x.numel()), symbol("u_next", u.numel())
        extra, guesses, points = [following, u_next], [("x", 1.0), ("u", 1.0)], []
        f0, f1 = dynamics(x, u), dynamics(following, u_next)
        if midpoint:
            u_mid = symbol("u_mid", u.numel())
            extra, guesses = [*extra, u_mid], [*guesses, ("u", 0.5)]
            x_mid = (x + following) / 2 + h / 8 * (f0 - f1)
            points = [(0.5, x_mid, u_mid)]
            rows = [following - x - h / 6 * (f0 + 4 * dynamics(x_mid, u_mid) + f1)]
            rule = [(1 / 6, x, u), (4 / 6, x_mid, u_mid), (1 / 6, following, u_next)]
        else:
            rows = [following - x - h / 2 * (f0 + f1)]
            rule = [(1 / 2, x, u), (1 / 2, following, u_next)]
        integral = h * sum(weight * cost(y, w) for weight, y, w in rule)
        return Step(following, integral, extra, rows, guesses, u_next, points, rule)

    step.controls_are_states, step.order = True, 4 if midpoint else 2
    return step


rk4.order, euler.order = 4, 1  # type: ignore[attr-defined]
METHODS = {
    "rk4": rk4,
    "euler": euler,
    "collocation": collocation(3),
    "trapezoidal": _by_nodes(False),
    "hermite_simpson": _by_nodes(True),
}


def order_of_cost(name):
    """Order of the error of the objective of smooth problems: two at most where controls are constant on intervals."""
    step = METHODS[name]
    return step.order if getattr(step, "controls_are_states", False) else min(step.order, 2)


def chosen_method(method):
    """A method by name, or a function of the caller's own."""
    if callable(method):
        return method
    return METHODS[one_of("method of transcription", method, METHODS)]
