"""Ways to turn rates into steps, for Problem.solve(method=...): what a stage gets besides its state and controls.

A method is a function (dynamics, cost, x, u, h, symbol) -> Step. dynamics(x, u) -> dx/dt and cost(x, u) -> cost rate
are casadi expressions of any x, u; h is the length of the interval; symbol(name, size) makes a further unknown, and
symbol.scale (n,), where it is there, has typical sizes of x.
Attributes of the function, which may be left out: `controls_are_states` if controls are values at nodes, False;
`control_degree` of their polynomials on intervals, where they may jump at nodes: u and the unknowns like it are its
Bernstein coefficients, 0 for constant ones; `order` of the error of the states at nodes, by which Solution.check judges
their defects; `with_degree(degree)`, the method of the same family of another degree.
"""

from dataclasses import dataclass, field

import casadi as ca
import numpy as np

from ..errors import OrderError
from ..validation import count, one_of
from .polynomials import bernstein_values, lagrange, quadrature


@dataclass(eq=False)
class Step:
    """following: state at the end of the interval. cost: integral over it. extra: further unknowns. rows: zero.

    guesses: for every unknown of `extra`, (what it is like: "x" or "u", share of the interval where). u_next: controls
    at the next node, where they are states. points: (share of the interval, x, u) where controls are free besides the
    nodes: their bounds, and limits that depend on them, hold there too. Between nodes and points controls are a
    polynomial through their values, or that of control_degree. quadrature: [(weight, x, u)] of the rule by which costs
    are integrated, the weights adding up to 1, for costs that are squares; None for the value at the start of the
    interval. equations: points where equations that depend on controls hold, in place of nodes and `points`, of methods
    with a control_degree.
    """

    following: object
    cost: object
    extra: list = field(default_factory=list)
    rows: list = field(default_factory=list)
    guesses: list = field(default_factory=list)
    u_next: object = None
    points: list = field(default_factory=list)
    quadrature: list | None = None
    equations: list = field(default_factory=list)


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


@dataclass(frozen=True)
class Collocation:
    """States a polynomial of `degree` on every interval, whose slope is that of the dynamics at the points of a scheme
    ("legendre", "radau"), controls one of control_degree, which may jump at nodes. Two that are alike are equal.

    The unknowns of controls are Bernstein coefficients, between the smallest and largest of which a polynomial lies:
    what bounds them bounds it everywhere. Limits hold at the start, the points and the end of intervals; equations that
    depend on controls, at as many points as a control has coefficients. Constant controls are those of other methods:
    limits hold at nodes. Sources: Hairer, Wanner, Solving ODEs II, IV.5; Farouki 2012 on Bernstein polynomials.
    """

    scheme: str
    degree: int
    control_degree: int

    @property
    def order(self):
        """Of the error of the states at nodes: 2 degree, less one for Radau's points."""
        return 2 * self.degree - (self.scheme == "radau")

    def with_degree(self, degree):
        """The same of another degree; that of controls stays one below it, if it is, or as it is, if it can."""
        full = self.control_degree == self.degree - 1
        return _collocation(self.scheme, degree, None if full else min(self.control_degree, degree - 1))

    def __call__(self, dynamics, cost, x, u, h, symbol):
        """Step of an interval."""
        tau, C, D, B = _coefficients(self.scheme, self.degree)
        inner = [symbol(f"x_{j}", x.numel()) for j in range(self.degree)]
        shares = [j / self.control_degree for j in range(1, self.control_degree + 1)]
        more = [symbol(f"u_{j}", u.numel()) for j in range(1, self.control_degree + 1)]

        def control(share):
            return _combined(bernstein_values(self.control_degree, share), [u, *more])

        Z = ca.horzcat(x, *inner)
        slopes = Z @ C
        at = list(zip(tau, inner, map(control, tau), strict=True))
        rows = [slopes[:, j] - h * dynamics(y, w) for j, (_, y, w) in enumerate(at)]
        rule = [(float(B[j]), y, w) for j, (_, y, w) in enumerate(at)]
        integral = sum(h * weight * cost(y, w) for weight, y, w in rule)
        following = inner[-1] if tau[-1] == 1 else Z @ D
        guesses = [("x", float(t)) for t in tau] + [("u", share) for share in shares]
        step = Step(following, integral, [*inner, *more], rows, guesses, quadrature=rule)
        if self.control_degree:
            step.points = [*(point for point in at if point[0] < 1), (1.0, following, more[-1])]
            step.equations = at
            if self.control_degree < self.degree - 1:
                places = ca.collocation_points(self.control_degree + 1, self.scheme)
                step.equations = [(t, _combined(lagrange([0.0, *tau], t), [x, *inner]), control(t)) for t in places]
        return step


def _coefficients(scheme, degree):
    """(points, matrix that takes values at 0 and the points to slopes there, row that takes them to the end, weights of
    the points in an integral: CasADi's add up to a half for one point of Radau)."""
    tau = ca.collocation_points(degree, scheme)
    C, D, _ = ca.collocation_coeff(tau)
    return tau, C, D, quadrature(tau)


def _combined(weights, values):
    """Sum of weights times values, without those of weight zero."""
    terms = [y if weight == 1 else float(weight) * y for weight, y in zip(weights, values, strict=True) if weight]
    return sum(terms[1:], terms[0])


def _collocation(scheme, degree, control_degree):
    name = {"legendre": "gauss"}.get(scheme, scheme)
    degree = count(f"{name}: degree", degree, 1, 9)
    if control_degree is None:
        control_degree = degree - 1
    # a control has no more coefficients than an interval has points: others would be free
    return Collocation(scheme, degree, count(f"{name}: control_degree", control_degree, 0, degree - 1))


def radau(degree=3, control_degree=None):
    """Collocation at `degree` points of Radau, the last of them the end of the interval: of order 2 degree - 1, for
    stiff dynamics too. control_degree: of the polynomial of controls, by default degree - 1, 0 for constant ones."""
    return _collocation("radau", degree, control_degree)


def gauss(degree=3, control_degree=None):
    """Collocation at `degree` points of Gauss-Legendre, of order 2 degree. control_degree: see radau."""
    return _collocation("legendre", degree, control_degree)


def collocation(degree=3):
    """Collocation at `degree` points of Gauss-Legendre, u constant over the interval: gauss(degree, 0)."""
    return gauss(degree, 0)


@dataclass(frozen=True)
class Implicit:
    """Multiple shooting by an implicit Runge-Kutta method, u constant on the interval, in `steps` equal steps of it.

    Its equations are solved by Newton's method inside the step, so that they are no constraints of the program;
    derivatives are those of the implicit function theorem. Where Newton's method fails, solvers try a shorter step.
    Source: Hairer, Wanner, Solving ODEs II, IV.5 and IV.8.
    """

    scheme: str
    degree: int
    steps: int

    @property
    def order(self):
        """Of the error of the states at nodes."""
        return 2 * self.degree - (self.scheme == "radau")

    def with_degree(self, degree):
        """The same of another degree."""
        return implicit(degree, self.steps, {"legendre": "gauss"}.get(self.scheme, self.scheme))

    def __call__(self, dynamics, cost, x, u, h, symbol):
        """Step of an interval."""
        if not isinstance(x, ca.MX):
            raise OrderError("implicit: its equations cannot be solved within stages of graph='sx'; leave graph out")
        n, length = x.numel(), h / self.steps
        tau, C, D, B = _coefficients(self.scheme, self.degree)
        scale = getattr(symbol, "scale", np.ones(n))
        start, inner = ca.MX.sym("start", n), ca.MX.sym("inner", n, self.degree)
        Z = ca.horzcat(start, scale * inner)
        slopes = [length * dynamics(Z[:, j + 1], u) for j in range(self.degree)]
        misses = (Z @ C - ca.horzcat(*slopes)) / scale
        inputs = [s for s in ca.symvar(misses) if not any(ca.is_equal(s, own) for own in (start, inner))]
        equations = ca.Function("equations", [ca.vec(inner), start, *inputs], [ca.vec(misses)])
        solve = ca.rootfinder("solve", "fast_newton", equations, dict(_NEWTON))
        rule = []
        for _ in range(self.steps):
            found = solve(ca.repmat(x / scale, self.degree, 1), x, *inputs)
            left = ca.norm_inf(equations(found, x, *inputs))
            found = found + ca.if_else(left < 1e-6, 0, ca.inf)  # what it failed at is no number, which solvers know
            Z = ca.horzcat(x, scale * ca.reshape(found, n, self.degree))
            rule += [(float(B[j]) / self.steps, Z[:, j + 1], u) for j in range(self.degree)]
            x = Z[:, -1] if tau[-1] == 1 else Z @ D
        return Step(x, sum(h * weight * cost(y, u) for weight, y, _ in rule), quadrature=rule)


# of states over their scales. The plugin "newton" searches along its steps by what is missed, which crawls where
# dynamics are stiff; and C cannot be written of it
_NEWTON = {"abstol": 1e-12, "abstolStep": 1e-12, "max_iter": 50, "error_on_fail": False}


def implicit(degree=2, steps=1, scheme="radau"):
    """Multiple shooting for stiff dynamics: an implicit Runge-Kutta method at `degree` points of "radau", of order
    2 degree - 1 and damped, or "gauss", of order 2 degree, in so many steps of every interval; see Implicit."""
    one_of("scheme of implicit", scheme, ("radau", "gauss"))
    scheme = {"gauss": "legendre"}.get(scheme, scheme)
    return Implicit(scheme, count("implicit: degree", degree, 1, 9), count("implicit: steps", steps, 1, 1000))


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
    "radau": radau(3),
    "gauss": gauss(3),
    "implicit": implicit(2),
    "trapezoidal": _by_nodes(False),
    "hermite_simpson": _by_nodes(True),
}


def order_of_cost(method):
    """Order of the error of the objective of smooth problems: of controls that are polynomials on intervals twice what
    these are off by at most, two where they are constant. 1 of methods of one's own that do not say theirs."""
    step = chosen_method(method)
    order = getattr(step, "order", 1)
    if getattr(step, "controls_are_states", False):
        return order
    return min(order, 2 * (getattr(step, "control_degree", 0) + 1))


def chosen_method(method):
    """A method by name, or a function of the caller's own."""
    if callable(method):
        return method
    return METHODS[one_of("method of transcription", method, METHODS)]
