"""Integrals over the mass of bodies, in working axes: summed once for every subtree, from the tips to the ground."""

from dataclasses import dataclass, fields
from functools import cached_property

import casadi as ca
import numpy as np

from ..lie.quick import quick
from ..lie.so3 import skew
from ..model.inertia import casadi_value
from .fields import axial, spread
from .frames import sparse, upper_mirrored
from .rotations import cross, crossed

_VECTORS, _SYMMETRIC, _SQUARE = "hlnfLkg", "TP", "KJ"


@dataclass
class MassIntegrals:
    """Integrals over the mass of one or more bodies about one origin, r the points. A method names those that it needs
    as fields of a subclass; a letter means the same in all of them.

    m, h       mass, first moment of r
    T, P       tensor of inertia; second moments r r^T
    K, l       of v r^T and v, v the velocity, or twice it
    n, f       moment and force
    J, L, k    of y r^T, y and r x y, y a virtual velocity
    g          what v makes of y: gains drift x L
    """

    @classmethod
    def zero(cls):
        """The integrals of no body."""
        shape = {x: (3, 1) for x in _VECTORS} | {x: (3, 3) for x in _SYMMETRIC + _SQUARE}
        return cls(**{x.name: ca.DM(*shape[x.name]) if x.name in shape else 0 for x in fields(cls)})

    def __add__(self, other):
        return type(self)(*(getattr(self, x.name) + getattr(other, x.name) for x in fields(self)))

    def turned(self, turn):
        """The same in the axes from which `turn` turns."""
        kinds = (_VECTORS, turn.outward), (_SYMMETRIC, turn.symmetric), (_SQUARE, turn.square)
        by_name = {x: rotate for letters, rotate in kinds for x in letters}
        return type(self)(*(by_name.get(x.name, _same)(getattr(self, x.name)) for x in fields(self)))

    def moved(self, frame):
        """The same about the parent's origin, in the axes of it that `frame` hangs on, by the parent's observer."""
        x = {x.name: getattr(self, x.name) for x in fields(self)}
        p, m, drift = frame.p, x["m"], frame.drift
        h = frame.outward(x["h"])
        if "T" in x:
            X, H = skew(p), skew(h)
            x["T"] = upper_mirrored(frame.R @ x["T"] @ frame.R.T - X @ H - H @ X - m * (X @ X))
        if "P" in x:
            across = quick(h @ p.T)
            x["P"] = upper_mirrored(quick(frame.R @ x["P"] @ frame.R.T) + across + across.T + m * (p @ p.T))
        x["h"] = h + m * p
        if "n" in x:
            x["n"], x["f"] = frame.wrench(x["n"], x["f"])
        if "k" in x:
            x["k"], L = frame.wrench(x["k"], x["L"])
            x["J"], x["L"] = quick(frame.R @ x["J"] @ frame.R.T) + L @ p.T, L
        if "K" in x:
            x["K"], x["l"] = moved_flow(frame, x["K"], x["l"])
        if "K" in x and drift is not None:
            x["K"], x["l"] = x["K"] + drift @ x["h"].T, x["l"] + m * drift
        if "g" in x:
            x["g"] = frame.outward(x["g"]) + cross(drift, x["L"])
        return type(self)(**x)

    def inertia(self, a):
        """Wrench that gives the subtree, as one body, the acceleration field a."""
        return self.tensor @ a[0] + cross(self.h, a[1]), self.m * a[1] - cross(self.h, a[0])

    @cached_property  # fields are never assigned anew: sums make new objects
    def tensor(self):
        """The tensor of inertia, from the second moments where it is no field itself."""
        return self.T if hasattr(self, "T") else spread(self.P)

    @property
    def flow(self):
        """The Flow of the velocity."""
        return Flow(self.K, self.l)


def _same(x):
    return x


@dataclass
class Flow:
    """Integrals K, l over the mass of v r^T and v, for a field v of the points r of a subtree: twice a velocity where
    it is the Coriolis acceleration that counts."""

    K: object
    l: object

    def coriolis(self, w):
        """Wrench of the acceleration w x v: 2 B(I, v/2) of Singh et al. 2023, which needs the turn w only."""
        return self._spread @ w, crossed(w, self.l)

    def coriolis_transposed(self, s):
        """Vector whose product with w is that of the motion s with coriolis(w)."""
        return self._spread.T @ s[0] + cross(self.l, s[1])

    def momentum(self):
        """Momentum of v: moment, force."""
        return axial(self.K), self.l

    def inertia_change(self, x):
        """Wrench of the acceleration field x over the change of the inertia as the subtree moves by v / 2."""
        half = 0.5 * self.l
        return self._symmetric @ x[0] + cross(half, x[1]), crossed(x[0], half)

    @cached_property  # as above
    def _spread(self):
        return spread(self.K)

    @cached_property
    def _symmetric(self):
        return 0.5 * (self._spread + self._spread.T)

    def moved(self, frame):
        """The same about the parent's origin, in the axes of it that `frame` hangs on."""
        return Flow(*moved_flow(frame, self.K, self.l))

    def turned(self, turn):
        """The same in the axes from which `turn` turns."""
        return Flow(turn.square(self.K), turn.outward(self.l))


def moved_flow(frame, K, l):
    """K, l as above about the parent's origin, by the same observer."""
    l = frame.outward(l)
    return quick(frame.R @ K @ frame.R.T) + l @ frame.p.T, l


def rigid_flow(v, m, h, P):
    """(K, l) of a velocity field v of points that move as one body."""
    w, u = v
    return quick(u @ h.T) + skew(w) @ P, m * u + quick(ca.cross(w, h))


class CompositeSums:
    """The MassIntegrals of bodies, and then of their subtrees. own(i, early): those of body i alone, in its working
    axes if `early`, else in its own: a body that turns and carries none but parallel axes is turned at once, as its
    constants are sparse."""

    def __init__(self, model, frames, zero, own):
        self._model, self._frames = model, frames
        self._in_body, self._in_working = {}, {}  # sums of a body and the children that hang on its axes
        for i in model.bodies:
            early = frames[i].angle is not None and all(frames[k].parallel for k in model.children[i])
            alone = own(i, early)
            self._in_working[i], self._in_body[i] = (alone, zero) if early else (zero, alone)

    def sum(self, i):
        """Sums of the subtree of body i in its working axes; hands them on to the parent."""
        frame, p = self._frames[i], self._model.parent[i]
        sums = self._in_body[i].turned(frame.turn) + self._in_working[i]
        if p:
            side = self._in_working if frame.parallel else self._in_body
            side[p] = side[p] + sums.moved(frame)
        return sums


def constants(inertia):
    """(mass, first moment, tensor, second moments sum r r^T), with structural zeros."""
    m, h, T = inertia.mass, inertia.moment, inertia.tensor
    if isinstance(T, np.ndarray):
        return m, sparse(h), sparse(T), sparse(0.5 * np.trace(T) * np.eye(3) - T)
    return m, sparse(h), sparse(T), ca.sparsify(second_moments(inertia, casadi_value(T)))


def second_moments(inertia, T):
    """sum r r^T in the axes of the inertia's tensor T."""
    return 0.5 * ca.trace(casadi_value(inertia.tensor)) * ca.DM.eye(3) - T
