"""Products of the Lagrangian Hessian of inverse dynamics with a vector: the recursion of the adjoint and, line by line,
its derivative along the vector (forward over reverse).

Turns of axes are differentiated as such: a vector Y = R X of a body that turns with w changes by R X' + w x Y, so that
no derivative of R is formed. What lies between two turns is linear or bilinear in a few numbers, and jtimes does it.
"""

from dataclasses import dataclass, replace

import casadi as ca

from ..lie.quick import quick
from ..model.robot import tangent_map
from ..working_axes.assembly import velocity_brackets
from ..working_axes.fields import acceleration_matrix
from ..working_axes.frames import WorkingFrame, sparse
from ..working_axes.rotations import PlaneRotation, cross
from ..working_axes.sums import MassIntegrals
from .composite_adjoint import gradients
from .virtual_motion import VirtualMotion, VirtualTree


class Tape:
    """Derivatives of expressions along one direction, where turned vectors are symbols that know theirs."""

    def __init__(self, arguments, rates):
        self._rates = {}
        self.symbols, self.values = [], []
        for x, rate in zip(arguments, rates, strict=True):
            self._know(x, ca.densify(ca.SX(rate)))

    def _know(self, x, rate):
        for k in range(x.nnz()):
            self._rates[x.nz[k].__hash__()] = x.nz[k], rate.nz[k]

    def rate(self, x):
        """Derivative of an expression."""
        x = ca.SX(x)
        known = [self._rates[s.__hash__()] for s in ca.symvar(x) if s.__hash__() in self._rates]
        if not known:
            return ca.SX(*x.shape)
        at, rates = (ca.vertcat(*column) for column in zip(*known, strict=True))
        return ca.reshape(ca.jtimes(ca.vec(x), at, rates), *x.shape)

    def turned(self, x, turn, change):
        """turn(x) as a symbol; change(it): what it gains by the motion of the axes."""
        return self.known(turn(x), lambda y: turn(self.rate(x)) + change(y))

    def known(self, value, rate):
        """A value as a symbol, from rate(it), its derivative."""
        y = self._symbol(ca.SX(value))
        self._know(y, ca.project(self._symbol(ca.SX(rate(y))), y.sparsity()))
        return y

    def _symbol(self, value):
        value = ca.sparsify(value)
        entries = ca.SX.sym("y", value.nnz())
        self.symbols.append(entries)
        self.values.append(ca.vertcat(ca.SX(0, 1), *value.nonzeros()))
        return quick(ca.SX(value.sparsity(), entries))

    def written_out(self, results):
        """Results without the symbols of turned vectors."""
        return ca.substitute_inplace(self.symbols, self.values, list(results))[1]


class _Turn(PlaneRotation):
    """PlaneRotation about z whose results are on a tape; its angle changes at a known rate."""

    def __init__(self, angle, tape):
        super().__init__(angle)
        self._tape = tape
        self.rate = None if angle is None else tape.rate(angle)

    def outward(self, X):
        return X if self.identity else self._tape.turned(X, super().outward, lambda Y: _about_z(self.rate, Y))

    def inward(self, X):
        return X if self.identity else self._tape.turned(X, super().inward, lambda Y: _about_z(-self.rate, Y))


def _about_z(rate, Y):
    return ca.vertcat(-rate * Y[1, :], rate * Y[0, :], ca.SX(1, Y.shape[1]))


@dataclass(frozen=True)
class _Frame(WorkingFrame):
    """WorkingFrame whose rotation R changes by the angular velocity w, in its own axes."""

    tape: Tape | None = None
    w: object = None

    def inward(self, X):
        return self.tape.turned(X, super().inward, lambda Y: -cross(self.w, Y))

    def outward(self, X):
        return self.tape.turned(X, super().outward, lambda Y: cross(self.R @ self.w, Y))


@dataclass
class _Integrals(MassIntegrals):
    """What the adjoint reads, and what these need."""

    m: object
    h: object
    n: object
    f: object
    L: object
    J: object
    k: object
    g: object


_FIELDS, _SUMS = ("w", "u", "wd", "a", "x", "y"), "nfLkg"


def _integrals(every, parts):
    J = ca.DM(3, 3)  # sums need it, the adjoint does not
    return _Integrals(every.m, every.h, J=J, **{x: parts.get(x, getattr(every, x)) for x in _SUMS})


class _TapedTree(VirtualTree):
    """VirtualTree on a tape."""

    integrals = _Integrals

    def __init__(self, tape, step, *arguments):
        self._tape, self._step = tape, step
        super().__init__(*arguments)

    def _placed(self, q):
        model, own = self.model, self.model.joint_q(q)
        step, frames = model.joint_v(self._step), super()._placed(q)
        for i in model.bodies:
            frame = frames[i]
            taped = replace(frame, turn=_Turn(frame.angle, self._tape))
            if frame.parallel:
                p = model.placement(i, own[i])[1]
                taped = replace(taped, p=frames[model.parent[i]].turn.outward(sparse(p) if isinstance(p, ca.DM) else p))
            if not ca.SX(frame.R).is_constant():
                w = model.S[i][:3, :] @ step[i]
                taped = _Frame(taped.R, taped.p, taped.turn, frame.angle, frame.parallel, frame.along_z, None,
                               self._tape, w)  # fmt: skip
            frames[i] = taped
        return frames

    def _own(self, i, motion, turn):
        """Those of body i; where it turns in these axes, by what an observer sees who turns with it, to whom its
        inertia does not change."""
        if turn.identity:
            return _integrals(super()._own(i, motion, turn), {})
        fields = [getattr(motion, x) for x in _FIELDS]
        s, rates = ([ca.SX.sym("x", 3) for _ in _FIELDS] for _ in range(2))
        w, u, wd, a, x, y = s
        seen = VirtualMotion(w, u, wd, a, acceleration_matrix(w, wd), x, y)
        every = super()._own(i, seen, PlaneRotation(self.frames[i].angle))
        found = ca.vertcat(*(getattr(every, x) for x in _SUMS))
        along = ca.jtimes(found, ca.vertcat(*s), ca.vertcat(*rates))
        turns = [self._tape.rate(x) - _about_z(turn.rate, x) for x in fields]
        (value,) = ca.substitute([found], s, [ca.densify(ca.SX(x)) for x in fields])
        (change,) = ca.substitute([along], s + rates, [ca.densify(ca.SX(x)) for x in (*fields, *turns)])
        parts = {}
        for name, now, rate in zip(_SUMS, ca.vertsplit(value, 3), ca.vertsplit(change, 3), strict=True):
            parts[name] = self._tape.known(now, lambda Y, rate=rate: rate + _about_z(turn.rate, Y))
        return _integrals(every, parts)


def product(model, q, v, dv, lam, z, W=None):
    """(H z) by q, v, dv, (nv,) each, of H the Hessian of lam' tau and z = [steps of q, changes of v, of dv].

    q, v, dv must be symbols. Cost O(n).
    """
    tape = Tape((q, v, dv), (tangent_map(model.robot, q) @ z[0], z[1], z[2]))
    found = gradients(_TapedTree(tape, z[0], model, q, v, dv, W, lam), lam)
    by_q, *rest = tape.written_out([*(tape.rate(x) for x in found), found[0]])
    by_v, by_a, slope = rest
    return by_q - 0.5 * velocity_brackets(model, z[0]).T @ slope, by_v, by_a
