"""Matrices of the equations of motion in other velocities w: v = G w, with time derivatives by Leibniz' rule.

Arguments are lists of derivatives [x, x', ...] along the motion, and so are results, of orders 0..order.
"""

from ..lie.leibniz import product_derivative
from ..registry import conversion
from .by_ad import along
from .whole_mass import whole_mass


def product(a, b, order):
    """Derivatives of the product a b."""
    return [product_derivative(a, b, k) for k in range(order + 1)]


def turned(a):
    """Transposes."""
    return [x.T for x in a]


def forces_in(G, f, order):
    """Generalised forces G^T f."""
    return product(turned(G), f, order)


def mass_in(G, M, order):
    """Mass matrix G^T M G."""
    return product(product(turned(G), M, order), G, order)


def coriolis_in(G, C, M, order):
    """Coriolis matrix G^T (C G + M G'), admissible if C is; G to one order more."""
    return product(turned(G), _sums(product(C, G, order), product(M, G[1:], order)), order)


def bias_in(G, h, M, w, order):
    """Bias torques G^T (h + M G' w); G to one order more."""
    return product(turned(G), _sums(h, product(M, product(G[1:], w, order), order)), order)


def _sums(a, b):
    return [x + y for x, y in zip(a, b, strict=True)]


def _mass(seen):
    return along(seen.model, seen.order, seen.inner["q"], seen.velocities(), whole_mass(seen.model, seen.inner["q"]))


@conversion("mass_matrix")
def _(seen, found):
    return seen.named("M", mass_in(seen.matrix(seen.order), seen.jet(found, "M"), seen.order))


@conversion("gravity")
def _(seen, found):
    return seen.named("g", forces_in(seen.matrix(seen.order), seen.jet(found, "g"), seen.order))


@conversion("bias")
def _(seen, found):
    G, h = seen.matrix(seen.order + 1), seen.jet(found, "h")
    return seen.named("h", bias_in(G, h, _mass(seen), seen.velocities(own=True), seen.order))


@conversion("coriolis_matrix")
def _(seen, found):
    C = coriolis_in(seen.matrix(seen.order + 1), seen.jet(found, "C"), _mass(seen), seen.order)
    return seen.named("C", C)


@conversion("dynamic_matrices")
def _(seen, found):
    n, G = seen.order, seen.matrix(seen.order + 1)
    M, C, g = (seen.jet(found, x) for x in "MCg")
    out = seen.named("M", mass_in(G, M, n)) | seen.named("C", coriolis_in(G, C, M, n))
    return out | seen.named("g", forces_in(G, g, n))
