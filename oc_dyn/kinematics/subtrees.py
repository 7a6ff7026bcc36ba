"""Sums over the bodies of subtrees, in working axes: added up once for every body, from the tips to the ground."""

from dataclasses import dataclass, fields

import casadi as ca
import numpy as np

from ..model.inertia import casadi_value
from .working_frames import hangs_on_parallel_axes, sparse


@dataclass
class Sums:
    """What adds up over bodies, about one origin: fields are numbers, such as the mass, but for those that a subclass
    names, by one letter each, as vectors, symmetric and other matrices. It also says how they are moved()."""

    VECTORS = SYMMETRIC = SQUARE = ""

    @classmethod
    def zero(cls):
        shape = {x: (3, 1) for x in cls.VECTORS} | {x: (3, 3) for x in cls.SYMMETRIC + cls.SQUARE}
        return cls(**{x.name: ca.DM(*shape[x.name]) if x.name in shape else 0 for x in fields(cls)})

    def __add__(self, other):
        return type(self)(*(getattr(self, x.name) + getattr(other, x.name) for x in fields(self)))

    def turned(self, turn):
        """The same in the axes from which `turn` turns."""
        kinds = (self.VECTORS, turn.outward), (self.SYMMETRIC, turn.symmetric), (self.SQUARE, turn.square)
        found = {x: function(getattr(self, x)) for letters, function in kinds for x in letters}
        return type(self)(**{x.name: found.get(x.name, getattr(self, x.name)) for x in fields(self)})


class Collected:
    """The Sums of bodies, and then of their subtrees. own(i, early): those of body i alone, in its working axes if
    `early`, else in its own: a body that turns and carries none but parallel axes is turned at once, as its constants
    are sparse."""

    def __init__(self, model, frames, zero, own):
        self._model, self._frames = model, frames
        self._in_body, self._in_working = {}, {}  # sums of a body and the children that hang on its axes
        for i in model.bodies:
            early = hangs_on_parallel_axes(model, frames, i)
            alone = own(i, early)
            self._in_working[i], self._in_body[i] = (alone, zero) if early else (zero, alone)

    def sum(self, i, *drift):
        """Sums of the subtree of body i in its working axes; hands them on to the parent, with what moved() needs."""
        frame, p = self._frames[i], self._model.parent[i]
        sums = self._in_body[i].turned(frame.turn) + self._in_working[i]
        if p:
            side = self._in_working if frame.parallel else self._in_body
            side[p] = side[p] + sums.moved(frame, *drift)
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
