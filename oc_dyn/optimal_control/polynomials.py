"""Polynomials on an interval: Taylor shift, Bernstein coefficients, Hermite interpolation, Lobatto points.

A piece of length h is x_0 + x_1 s + x_2 s^2 + ... with s in [0, 1] and x_k = q^(k) h^k / k!.
"""

from math import comb, factorial

import numpy as np


def falling(j, d):
    """j (j - 1) ... (j - d + 1): what d differentiations put in front of s^(j - d)."""
    return factorial(j) // factorial(j - d) if j >= d else 0


def later(x, t):
    """[x, x', ...] a time t after those given, the last of which is constant; numbers, arrays or expressions."""
    orders = range(len(x))
    return [sum(x[j] * t ** (j - d) / factorial(j - d) for j in orders if j >= d) for d in orders]


def shift(degree):
    """(degree + 1, degree + 1) matrix that takes Taylor coefficients at s = 0 to those at s = 1 (Pascal's)."""
    return np.array([[comb(k, j) for k in range(degree + 1)] for j in range(degree + 1)], float)


def at(degree, d, s):
    """(degree + 1,) row that gives the d-th derivative by s at s from the Taylor coefficients."""
    return np.array([falling(j, d) * (s ** (j - d) if j > d else 1.0) if j >= d else 0.0 for j in range(degree + 1)])


def bernstein(degree, d):
    """(degree + 1 - d, degree + 1) matrix: Bernstein coefficients of the d-th derivative by s.

    The polynomial lies between its smallest and largest Bernstein coefficient on the whole interval; the first and
    last are its values at the ends.
    """
    m = degree - d
    return np.array(
        [
            [falling(j, d) * comb(i, j - d) / comb(m, j - d) if 0 <= j - d <= i else 0.0 for j in range(degree + 1)]
            for i in range(m + 1)
        ]
    )


def bernstein_values(degree, s):
    """(degree + 1,) values of the Bernstein polynomials of a degree at s, or (degree + 1, M) at s (M,)."""
    return np.array([comb(degree, j) * s**j * (1 - s) ** (degree - j) for j in range(degree + 1)])


def lagrange(points, s):
    """(n,) weights of values at points (n,) in the value at s of the polynomial through them, or (n, M) at s (M,)."""
    others = [[*points[:i], *points[i + 1 :]] for i in range(len(points))]
    ratios = ([(s - b) / (a - b) for b in rest] for a, rest in zip(points, others, strict=True))
    return np.array([np.prod([np.ones(np.shape(s)), *each], axis=0) for each in ratios])


def quadrature(points):
    """(n,) weights of values at points (n,) in the integral from 0 to 1 of the polynomial through them."""
    powers = np.arange(len(points))
    return np.linalg.solve(np.vander(points, increasing=True).T, 1 / (powers + 1))


def uniform_b_spline(degree):
    """(degree + 1, degree + 1) matrix: coefficients by powers of s in [0, 1] of a piece of a spline with equal knots,
    from the control points that bear on it."""
    M = np.ones((1, 1))
    for k in range(1, degree + 1):  # de Boor: P_i of the level below comes from P_i and P_(i+1), by (s + k - 1 - i) / k
        new = np.zeros((k + 1, k + 1))
        for i in range(k):
            share = (k - 1 - i) / k
            new[:k, i] += (1 - share) * M[:, i]
            new[1:, i] -= M[:, i] / k
            new[:k, i + 1] += share * M[:, i]
            new[1:, i + 1] += M[:, i] / k
        M = new
    return M


def lobatto(interior):
    """Points of Gauss-Lobatto quadrature on [0, 1] with so many interior points, and their weights."""
    m = interior + 1
    legendre = np.polynomial.legendre.Legendre.basis(m)
    inner = np.real(legendre.deriv().roots()) if interior else np.zeros(0)
    x = np.concatenate([[-1.0], np.sort(inner), [1.0]])
    weights = 2.0 / (m * (m + 1) * legendre(x) ** 2)
    return (x + 1) / 2, weights / 2


def hermite(start, goal, T):
    """(a + b, n) coefficients by powers of t of the polynomial with derivatives start (a, n) at 0, goal (b, n) at T."""
    a, b = len(start), len(goal)
    A = np.array([at(a + b - 1, d, 0.0) for d in range(a)] + [at(a + b - 1, d, 1.0) for d in range(b)])
    values = np.array([x * T**d for d, x in enumerate(start)] + [x * T**d for d, x in enumerate(goal)], float)
    return np.linalg.solve(A, values) / (T ** np.arange(a + b))[:, None]


def derivatives_at(pieces, s, count):
    """(count, K, n): derivatives 0..count-1 at local times s (K,) of pieces given by derivatives (K, order + 1, n)."""
    order = pieces.shape[1] - 1
    out = np.zeros((count, len(s), pieces.shape[2]))
    powers = [np.ones(len(s))]
    for j in range(1, order + 1):
        powers.append(powers[-1] * s / j)
    for d in range(min(count, order + 1)):
        for j in range(d, order + 1):
            out[d] += powers[j - d][:, None] * pieces[:, j]
    return out
