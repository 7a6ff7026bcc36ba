"""Analytic derivatives registered with a casadi.Function, so that CasADi uses them wherever it differentiates it.

What has to be registered together, and why (CasADi 3.8): the Jacobian `jac_f` (option custom_jacobian); the adjoint
`adj1_f` with its own Jacobian, which holds the Hessian of lam' f, else CasADi differentiates the Jacobian again, which
is many times slower; adjoints of several seeds `adj<k>_f`, else `map` differentiates the body; never_inline and
enable_forward=False, else `map` and expand=True lose them; and jac_penalty = 1.5 / outputs, with which one seed goes to
adj1_f and more go to the Jacobian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from .errors import OrderError, ShapeError
from .model.coordinate_steps import on_vector_space, step_curvature, step_map
from .model.robot import Robot
from .types import AnyRobot, Array
from .validation import count, number

_MARK = "registered_"  # of the name of what is kept with a Function besides its adjoints, and holds its Jacobian


def with_derivatives(
    name: str,
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    jacobian: dict[tuple[int, int], Any],
    adjoint: Callable[[Any], list[Any]],
    hessian: Callable[[Any], dict[tuple[int, int], Any]],
    input_names: Sequence[str],
    output_names: Sequence[str],
) -> ca.Function:
    """casadi.Function of symbols `inputs` and expressions `outputs`, columns of SX or MX, with given derivatives.

    jacobian: {(output, input): block}, by index. adjoint(seeds) -> [gradient by each input of the sum of seed' output].
    hessian(seeds) -> {(i, j): block} second derivatives of that sum, i and j any order; blocks left out are zero.
    """
    matrix = type(outputs[0])
    shared = ca.cse if matrix is ca.MX else list  # what several calls have in common
    dummies = [matrix(*y.shape) for y in outputs]  # what the outputs are is not used; no entries, no cost
    seeds = [matrix.sym("seed", *y.shape) for y in outputs]
    J = {
        (o, i): jacobian.get((o, i), matrix(outputs[o].numel(), x.numel()))
        for o in range(len(outputs))
        for i, x in enumerate(inputs)
    }
    own = {"never_inline": False}
    protected = {"jac_penalty": 0, "enable_forward": False, "enable_reverse": False, "never_inline": True}
    jac = ca.Function(f"jac_{name}", [*inputs, *_named(dummies)], shared(list(J.values())), own)
    gradient, H = adjoint(seeds), hessian(seeds)
    blocks, gradient_dummies = [], [matrix(*x.shape) for x in inputs]
    for i, x in enumerate(inputs):
        blocks += [H.get((i, j), matrix(x.numel(), y.numel())) for j, y in enumerate(inputs)]
        blocks += [matrix(x.numel(), y.numel()) for y in outputs]
        blocks += [J[o, i].T for o in range(len(outputs))]
    given = [*inputs, *_named(dummies), *seeds]
    jac_of_adjoint = ca.Function(f"jac_adj1_{name}", [*given, *_named(gradient_dummies)], shared(blocks), own)
    gradient = shared([ca.densify(g) for g in gradient])
    one = ca.Function(f"adj1_{name}", given, gradient, {"custom_jacobian": jac_of_adjoint, **protected})
    plain = ca.Function(name, inputs, outputs, input_names, output_names)
    return _registered(plain, jac, one)


def _named(empty: Sequence[Any]) -> list[Any]:
    """Matrices without an entry as inputs: symbols, where they are MX."""
    return [ca.MX.sym("none", x.sparsity()) if isinstance(x, ca.MX) else x for x in empty]


def _registered(plain: ca.Function, jac: ca.Function, adjoint: ca.Function) -> ca.Function:
    name, inputs, outputs = plain.name(), plain.sx_in(), plain.sx_out()
    many, ports = sum(y.numel() for y in outputs), jac.mx_in()
    kept = [adjoint, ca.Function(f"{_MARK}{name}", ports, jac.call(ports, False, True))]
    kept += [_several_seeds(f"adj{k}_{name}", k, jac, inputs, outputs) for k in range(2, many + 1)]
    options: dict[str, Any] = {"custom_jacobian": jac, "cache": {f.name(): f for f in kept}, "jac_penalty": 1.5 / many}
    options |= {"never_inline": True, "enable_forward": False}
    return _again(plain, options)


def _again(f: ca.Function, options: dict[str, Any]) -> ca.Function:
    """The same expressions with other options, whatever f itself has."""
    return f.slice(f.name(), list(range(f.n_in())), list(range(f.n_out())), options)


def registered(f: ca.Function) -> tuple[ca.Function, ca.Function] | None:
    """(Jacobian, adjoint of one seed) of a Function made by with_derivatives, None of any other. CasADi writes them no
    further than the Jacobian, so that what sends f elsewhere sends them too: see with_registered."""
    cache = f.cache() if f.is_a("SXFunction") else {}
    mark = cache.get(f"{_MARK}{f.name()}")
    return None if mark is None else (mark.find_functions()[0], cache[f"adj1_{f.name()}"])


def with_registered(f: ca.Function, jac: ca.Function, adjoint: ca.Function) -> ca.Function:
    """f as with_derivatives made it, from one that has lost what registered tells of it."""
    return _registered(f, jac, adjoint)


def without_registered(f: ca.Function) -> ca.Function:
    """f as it is without derivatives of its own: what calls it with SX gets its expressions, not a call."""
    return _again(f, {})


def _several_seeds(
    name: str, k: int, jac: ca.Function, inputs: Sequence[ca.SX], outputs: Sequence[ca.SX]
) -> ca.Function:
    """Adjoint of k seeds at once: products with the Jacobian."""
    x = [ca.MX.sym("x", *y.shape) for y in inputs]
    dummies = [ca.MX.sym("y", ca.Sparsity(*y.shape)) for y in outputs]
    seeds = [ca.MX.sym("seed", y.shape[0], k) for y in outputs]
    J = jac.call([*x, *dummies])
    n = len(inputs)
    found = [sum(J[o * n + i].T @ seed for o, seed in enumerate(seeds)) for i in range(n)]
    return ca.Function(name, [*x, *dummies, *seeds], [ca.densify(y) for y in found])


def analytic(
    robot: Robot,
    quantity: str,
    order: int,
    base: ca.Function,
    options: dict[str, Any],
    make: Callable[..., ca.Function],
    of: AnyRobot | None = None,
    constant: Sequence[str] = (),
) -> ca.Function:
    """`base`, a Function of the quantity, with its registered partials, adjoint and Lagrangian Hessian attached.

    robot: that whose coordinates q are. make: od.function; of: the robot that it is given, by default this one. Ports
    that those do not differentiate by, as w_ext, are differentiated by AD, but `constant` ones, by which nothing
    changes. Derivatives by q are those by its coordinates, as `base` has them at quaternions of any length but zero,
    which it normalises: along a quaternion first derivatives are zero. Raises OrderError where a derivative is not
    registered.
    """
    J, A, H = (
        make(of or robot, f"{quantity}_{x}", order=order, **options)
        for x in ("partials", "adjoint", "lagrangian_hessian")
    )
    names, results = base.name_in(), base.name_out()
    matrix: Any = ca.MX if base.is_a("MXFunction") else ca.SX
    symbols = [matrix.sym(n, *base.size_in(n)) for n in names]
    by_name = dict(zip(names, symbols, strict=True))
    columns = [ca.vec(x) for x in symbols]
    values = [matrix(y) for y in base.call(symbols, True, False)]
    known = [n for n in names if f"adj_{n}" in A.name_out()]
    others = [n for n in names if n not in known and n not in constant]
    steps = None if on_vector_space(robot) else _Steps(robot, by_name["q"], known)
    partials = _written_out(J, by_name)
    jacobian = {}
    for o, y in enumerate(results):
        for i, x in enumerate(names):
            block = ca.jacobian(values[o], columns[i]) if x in others else partials.get(f"d{y}_d{x}")
            if block is not None and block.nnz():
                jacobian[o, i] = steps.partial(block) if steps and x == "q" else block
    numbers = {n: names.index(n) for n in names}

    def multiplied(function: ca.Function, seeds: Sequence[Any]) -> dict[str, Any]:
        lams = [n for n in function.name_in() if n.startswith("lam")]
        return _written_out(function, by_name | dict(zip(lams, seeds, strict=True)))

    def adjoint(seeds: Sequence[Any]) -> list[Any]:
        found = multiplied(A, seeds)
        power: Any = sum(ca.dot(s, y) for s, y in zip(seeds, values, strict=True)) if others else None
        if steps:
            found["adj_q"] = steps.gradient(found["adj_q"])
        found |= {f"adj_{n}": matrix(*by_name[n].shape) for n in constant if n in by_name}
        return [found[f"adj_{n}"] if n not in others else ca.gradient(power, by_name[n]) for n in names]

    def hessian(seeds: Sequence[Any]) -> dict[tuple[int, int], Any]:
        full, nv = multiplied(H, seeds)["H"], robot.nv
        blocks = {
            (a, b): full[i * nv : (i + 1) * nv, j * nv : (j + 1) * nv]
            for i, a in enumerate(known)
            for j, b in enumerate(known)
        }
        if steps:
            blocks = steps.hessian(blocks, multiplied(A, seeds)["adj_q"])
        blocks = {(numbers[a], numbers[b]): x for (a, b), x in blocks.items()}
        gradients = adjoint(seeds) if others else []
        for a in others:
            for b in names:
                block = ca.jacobian(ca.vec(gradients[numbers[b]]), by_name[a])
                blocks[numbers[b], numbers[a]], blocks[numbers[a], numbers[b]] = block, block.T
        return blocks

    return with_derivatives(base.name(), symbols, values, jacobian, adjoint, hessian, names, results)


def _written_out(f: ca.Function, given: dict[str, Any]) -> dict[str, Any]:
    """{port: value} of a Function at symbols, its instructions rather than a call."""
    found = ca.Function.call(f, [given[n] for n in f.name_in()], True, False)
    return dict(zip(f.name_out(), found, strict=True))


class _Steps:
    """Derivatives by the coordinates q from those by a step on the tangent space, of blocks of names, "q" first."""

    def __init__(self, robot: Robot, q: Any, names: Sequence[str]) -> None:
        self.robot, self.q, self.names = robot, q, names
        self.L = self._scalar(lambda q: step_map(robot, q))

    def _scalar(self, f: Callable[..., ca.SX], *values: Any) -> Any:
        """f(q, *values) of SX, whatever the values are."""
        if isinstance(self.q, ca.SX):
            return f(self.q, *values)
        given = [self.q, *values]
        symbols = [ca.SX.sym("x", x.sparsity()) for x in given]
        return ca.Function("by_coordinates", symbols, [f(*symbols)]).call(given)[0]

    def partial(self, by_step: Any) -> Any:
        return by_step @ self.L

    def gradient(self, by_step: Any) -> Any:
        return self.L.T @ by_step

    def hessian(self, blocks: dict[tuple[str, str], Any], gradient: Any) -> dict[tuple[str, str], Any]:
        """gradient: by the step, which the curvature of the coordinates goes with."""

        def twice(q: Any, block: Any, gradient: Any) -> Any:
            L = step_map(self.robot, q)
            return ca.triu2symm(ca.triu(L.T @ block @ L + step_curvature(self.robot, q, gradient)))

        out = dict(blocks)
        out["q", "q"] = self._scalar(twice, blocks["q", "q"], gradient)
        for x in self.names:
            if x != "q":
                out[x, "q"] = blocks[x, "q"] @ self.L
                out["q", x] = out[x, "q"].T
        return out


def check_derivatives(
    f: ca.Function, points: int = 3, seed: int = 0, tolerance: float = 1e-7, reference: ca.Function | None = None
) -> dict[str, float]:
    """{"jacobian": e, "gradient": e, "hessian": e}: how far the derivatives CasADi takes of f are from AD of the
    reference, relative to the largest entry, at random points.

    f: casadi.Function with columns or matrices as ports. reference: a Function of the same ports without registered
    derivatives; default the twin of a Function made by od.function, and central differences of f for others (whose own
    error is about 1e-7 for the Hessian). Raises OrderError, naming the worst derivative, above the tolerance, and where
    a derivative is not finite.
    """
    reference = getattr(f, "twin", None) if reference is None else reference
    points = count("check_derivatives: points", points, 1)
    tolerance = number("check_derivatives: tolerance", tolerance)
    rng = np.random.default_rng(seed)
    x = [ca.MX.sym(n, f.size1_in(k) * f.size2_in(k)) for k, n in enumerate(f.name_in())]
    lam = ca.MX.sym("lam", sum(f.numel_out(k) for k in range(f.n_out())))
    if reference is not None and (reference.name_in() != f.name_in() or reference.name_out() != f.name_out()):
        raise ShapeError(f"{f.name()}: the reference has other ports: {reference}")
    made = _derivatives(f, x, lam)
    expected = None if reference is None else _derivatives(reference, x, lam)
    worst = dict.fromkeys(("jacobian", "gradient", "hessian"), 0.0)
    for _ in range(points):
        at, multipliers = rng.uniform(-1, 1, sum(y.numel() for y in x)), rng.normal(size=lam.numel())
        got = [np.array(y) for y in made(at, multipliers)]
        want = (
            _differences(made, at, multipliers)
            if expected is None
            else [np.array(y) for y in expected(at, multipliers)]
        )
        for what, a, b in zip(worst, got[1:], want[1:], strict=True):
            error = float(np.abs(a - b).max(initial=0) / max(1.0, np.abs(b).max(initial=0)))
            if not np.isfinite(error):  # which no tolerance would find too large
                raise OrderError(f"{f.name()}: the {what}, or that of the reference, is not finite at a random point")
            worst[what] = max(worst[what], error)
    name = max(worst, key=worst.__getitem__)
    if worst[name] > tolerance:
        raise OrderError(
            f"{f.name()}: the {name} differs from the reference by {worst[name]:.1e}, tolerance {tolerance:g}"
        )
    return worst


def _derivatives(f: ca.Function, x: Sequence[ca.MX], lam: ca.MX) -> ca.Function:
    """(z, lam) -> value, Jacobian, gradient of lam' value, Hessian of it, z all inputs in one column."""
    z = ca.MX.sym("z", sum(y.numel() for y in x))
    parts = ca.vertsplit(z, np.cumsum([0, *(y.numel() for y in x)]).tolist())
    given = [ca.reshape(part, *f.size_in(k)) for k, part in enumerate(parts)]
    value = ca.vertcat(*(ca.vec(y) for y in ca.Function(f).call(given)))
    H, gradient = ca.hessian(ca.dot(lam, value), z)
    outputs = [ca.densify(y) for y in (value, ca.jacobian(value, z), gradient, H)]
    return ca.Function("derivatives", [z, lam], outputs)


def _differences(made: ca.Function, z: Array, lam: Array) -> list[Array]:
    """Value, Jacobian, gradient and Hessian by central differences of values and gradients."""
    steps = 1e-6 * np.eye(z.size)
    ends = [(made(z + h, lam), made(z - h, lam)) for h in steps]
    J = np.column_stack([np.array(a[0] - b[0]).ravel() / 2e-6 for a, b in ends])
    H = np.column_stack([np.array(a[2] - b[2]).ravel() / 2e-6 for a, b in ends])
    return [np.array(made(z, lam)[0]), J, J.T @ lam[:, None], H]
