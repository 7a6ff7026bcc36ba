"""The motions of joints on equal pieces as blocks of pieces, for the method of interior points in joint_program.py.

A joint's N pieces are m blocks of up to b. Unknown are the state in front of the first block, where it is not fixed,
and one control a piece; states are Taylor coefficients at nodes, scaled, see optimal_control/bernstein.py. What limits
read, Bernstein coefficients of q and its derivatives, are rows G [x; u] with the same G in every block.

An unknown motion is a known one that meets the ends and one that is zero there; what is solved for is the latter.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np

from ..optimal_control.polynomials import bernstein, shift

OF_ACCELERATION, OF_LAST = 5.0, 0.03  # weights of the roughness, see motion_problem.py
# pieces of a block by the highest derivative: in a block of b pieces influences of controls differ by up to b^r, and
# weights of limits by more on finer pieces; as few as there may be where rounding counts most
_MOST = {4: 8, 5: 6}


@dataclass(frozen=True, eq=False)
class Blocks:
    """What all joints of a plan have in common. r: highest derivative. known: how many are fixed at (start, goal).

    G (R, r + b): rows of a block. order (R,): derivative of each. rows (m, R): whether a row stands for anything.
    fixed (m, R): whether the ends decide it. A (m, r, r), B (m, r, b): from block to block. real (m, b): controls
    that there are. M (r + b, r + b): last block, from its state, free directions of its controls, zeros. products: of
    rows of G with themselves. calm (m, R): weights of squared rows that make the roughness. AB (m - 1, r, r + b): A and
    B side by side. idle (m, r + b): controls that there are not, or that the end decides. basic: motions that meet one
    end of 1, rows (E, m, R) and [x; u] (E, m, r + b).
    """

    r: int
    pieces: int
    known: tuple
    G: np.ndarray
    order: np.ndarray
    rows: np.ndarray
    fixed: np.ndarray
    A: np.ndarray
    B: np.ndarray
    real: np.ndarray
    M: np.ndarray
    products: np.ndarray
    calm: np.ndarray
    AB: np.ndarray
    idle: np.ndarray
    basic: tuple = ()


def scales(r, N):
    """(r + 1,) of the coefficients, without the reach of a joint."""
    orders = [(2 / N) ** j for j in range(r)]
    return np.array([*orders, orders[-1] / r])


def _size(N, r):
    """Pieces of a block."""
    return int(min(N, max(r + 1, min(round(np.sqrt(N)), _MOST.get(r, np.inf)))))


@lru_cache(maxsize=16)
def blocks(r, N, known):
    """Blocks of N pieces; the last one is whole, those in front may be shorter by one."""
    m = -(-N // _size(N, r))
    b = -(-N // m)
    lengths = np.full(m, b)
    lengths[: m * b - N] = b - 1
    S = scales(r, N)
    P = shift(r)[:r] * S[None] / S[:r, None]
    A, B = P[:, :r], P[:, r]
    states, powers = [np.eye(r, r + b)], [(np.eye(r), np.zeros((r, b)))]
    for q in range(b):
        x = A @ states[-1]
        x[:, r + q] += B
        states.append(x)
        powers.append((x[:, :r], x[:, r:]))
    G, order, place = [], [], []
    for q in range(b):
        full = np.vstack([states[q], np.eye(1, r + b, r + q)])
        for d in range(r + 1):
            for i in range(max(r - d, 1)) if d else range(r):
                G.append(bernstein(r, d)[i] * S @ full / (2 / N) ** d)
                order.append(d)
                place.append((q, d, i))
    end = np.vstack([states[b], np.zeros((1, r + b))])
    for d in range(1, r):
        G.append(bernstein(r, d)[0] * S @ end / (2 / N) ** d)
        order.append(d)
        place.append((b, d, 0))
    rows, fixed = _masks(r, m, b, lengths, place, known)
    G, order = np.array(G), np.array(order)
    both = [powers[k] for k in lengths]
    A, B = (np.array([x[k] for x in both]) for k in (0, 1))
    real = np.arange(b) < lengths[:, None]
    last = B[-1][: known[1]]
    inverse = np.linalg.pinv(last)
    _, _, V = np.linalg.svd(last)
    M = np.eye(r + b)
    M[r:, :r] = -inverse @ A[-1][: known[1]]
    M[r:, r:] = 0.0
    M[r:, r : r + b - known[1]] = V[known[1] :].T
    products = (G[:, :, None] * G[:, None, :]).reshape(len(G), -1)
    idle = np.concatenate([np.zeros((m, r), bool), ~real], axis=1)
    idle[-1] = np.arange(r + b) >= r + b - known[1]
    AB = np.concatenate([A, B], axis=2)[:-1]
    made = Blocks(r, N, known, G, order, rows, fixed, A, B, real, M, products, _calm(r, N, place, rows), AB, idle)
    object.__setattr__(made, "basic", _basic(made, inverse))
    return made


def _masks(r, m, b, lengths, place, known):
    """(rows, fixed), each (m, R)."""
    rows, fixed = np.zeros((2, m, len(place)), bool)
    for k in range(m):
        for number, (q, d, i) in enumerate(place):
            rows[k, number] = q < lengths[k] or (q == b and k == m - 1)
            early = k == 0 and q == 0 and i + d < known[0]
            if d == 0 and i == 0:
                early = k == 0 and q == 0
            at = (k == m - 1) * (q - b)  # -1: in the last piece, 0: at its end
            late = (k == m - 1 and at == -1 and r - i < known[1] and i > 0) or (q == b and d < known[1])
            fixed[k, number] = early or late
    return rows, fixed


def _calm(r, N, place, rows):
    """(m, R) weights: of the mean squares of scaled coefficients."""
    of_row = np.zeros(len(place))
    for number, (q, d, i) in enumerate(place):
        if d == 2 and i == 0 and q < place[-1][0]:
            of_row[number] += OF_ACCELERATION / 4
        if d == r:
            of_row[number] += OF_LAST / (factorial(r - 1) * N / 2) ** 2
    return rows * of_row / N


def _basic(made, inverse):
    """Motions that meet one end of 1 and zero else, as smooth as they get."""
    r, (m, b) = made.r, made.real.shape
    count = sum(made.known)
    z, goal = np.zeros((count, m, r + b)), np.zeros((count, r))
    for e in range(made.known[0]):
        z[e, 0, e] = 1.0
    for e in range(made.known[1]):
        goal[made.known[0] + e, e] = 1.0
    for k in range(m):
        if k == m - 1:
            z[:, k, r:] = (goal[:, : made.known[1]] - z[:, k, :r] @ made.A[k][: made.known[1]].T) @ inverse.T
        else:
            z[:, k + 1, :r] = z[:, k, :r] @ made.A[k].T + z[:, k, r:] @ made.B[k].T
    weight = np.where(made.rows & (made.order == r), 1.0, 0.0)
    weight = np.broadcast_to(weight, (count, *weight.shape))
    solve = Factor(made, weight).solve
    for _ in range(3):
        rho = z @ made.G.T
        z = z + solve(-weight * rho)
    return z @ made.G.T * made.rows, z


class Factor:
    """K = G^T M G over all motions that are zero at the ends, by Riccati's recursion, for weights M (J, m, R)."""

    def __init__(self, made, weight):
        self.made = made
        J, m, r = len(weight), len(made.rows), made.r
        d = made.G.shape[1]
        H = (weight.reshape(J * m, -1) @ made.products).reshape(J, m, d, d)
        H[:, -1] = made.M.T @ H[:, -1] @ made.M
        self.gains, self.inverses = np.empty((J, m, d - r, r)), np.empty((J, m, d - r, d - r))
        P = np.zeros((J, r, r))
        for k in range(m - 1, -1, -1):
            h = H[:, k]
            if k < m - 1:
                h = h + made.AB[k].T @ P @ made.AB[k]
            idle = made.idle[k]
            h[:, idle, idle] = 1.0
            self.inverses[:, k] = inverse = _inverse(h[:, r:, r:])
            self.gains[:, k] = gain = inverse @ h[:, r:, :r]
            P = h[:, :r, :r] - h[:, :r, r:] @ gain
            P = (P + P.transpose(0, 2, 1)) / 2
        free = made.known[0]
        self.first = np.linalg.inv(P[:, free:, free:]) if free < r else None
        self.onward = made.AB[:, :, :r] - made.AB[:, :, r:] @ self.gains[:, :-1]  # from block to block, controls free

    def solve(self, rows):
        """[x; u] (..., J, m, d) with K z = G^T rows, for rows (..., J, m, R)."""
        made = self.made
        r, (m, _), d, free = made.r, made.real.shape, made.G.shape[1], made.known[0]
        h = (rows.reshape(-1, rows.shape[-1]) @ made.G).reshape(*rows.shape[:-1], d)
        h[..., -1, :] = h[..., -1, :] @ made.M
        h *= ~made.idle
        own = h[..., None, :r] - h[..., None, r:] @ self.gains
        p = [own[..., -1, :, :]]
        for k in range(m - 2, -1, -1):
            p.append(own[..., k, :, :] + p[-1] @ self.onward[:, k])
        h[..., :-1, None, :] += np.stack(p[-2::-1], axis=-3) @ made.AB if m > 1 else 0.0
        steps = (self.inverses @ h[..., r:, None])[..., 0]
        x = np.zeros((*rows.shape[:-2], m, r))
        if self.first is not None:
            x[..., 0, free:] = (self.first @ p[-1][..., 0, free:, None])[..., 0]
        moved = (made.AB[:, :, r:] @ steps[..., :-1, :, None])[..., 0]
        for k in range(m - 1):
            x[..., k + 1, :] = (self.onward[:, k] @ x[..., k, :, None])[..., 0] + moved[..., k, :]
        z = np.concatenate([x, steps - (self.gains @ x[..., None])[..., 0]], axis=-1)
        z[..., -1, :] = z[..., -1, :] @ made.M.T
        z[..., :-1, r:] *= made.real[:-1]
        return z


def stationarity(made, rows, z):
    """(J,) sums of |derivative| |unknown| over free unknowns: by how much, relative to what they are, the unknowns of z
    (J, m, d), zero at the ends, could change the sum of rows (J, m, R) and rows of z. Straight from G, by no factor."""
    r, (m, b) = made.r, made.real.shape
    g, total, p = rows @ made.G, np.zeros(len(rows)), None
    for k in range(m - 1, -1, -1):
        h, own = g[:, k], z[:, k]
        if k == m - 1:
            h, free = h @ made.M, b - made.known[1]
            own = own @ np.vstack([np.zeros((r, b)), made.M[r:, r:]])
            u = h[:, r : r + free] * own[:, :free]
        else:
            h = h + np.concatenate([p @ made.A[k], p @ made.B[k]], axis=1)
            u = h[:, r:] * own[:, r:] * made.real[k]
        total, p = total + np.abs(u).sum(axis=1), h[:, :r]
    return total + np.abs(p * z[:, 0, :r])[:, made.known[0] :].sum(axis=1)


def _inverse(h):
    """Of symmetric positive definite matrices (J, b, b), scaled to a diagonal of 1 in between."""
    scale = 1 / np.sqrt(np.maximum(np.diagonal(h, axis1=1, axis2=2), 1e-300))
    both = scale[:, :, None] * scale[:, None, :]
    return np.linalg.inv(h * both) * both
