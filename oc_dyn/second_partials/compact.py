"""Second partials of inverse dynamics as a short program: the parts of the method composite, called, not written out.

Each part is a small Function, called body by body, for all joints below a joint at once, or for every pair of one of
them and a joint above. The program grows with the number of joints and not with what comes out; its C code is small
and compiles in seconds where written-out code takes hours.
"""

import casadi as ca

from ..registry import method
from . import packed_functions as packed
from .composite import CANNOT, SOURCE
from .tensor import pattern

_NO_MIMIC = CANNOT | {"mimic": "its entries would have to be added up"}


@method(
    "inverse_dynamics_second_partials",
    "compact",
    kind="analytic",
    source=f"{SOURCE}; in calls, not written out",
    cannot=_NO_MIMIC,
    regroup=True,
    graph="mx",
)
def compact(model, order, q, V, W=None):
    """[(d2tau_dqdq, d2tau_dvdv, d2tau_dqdv, dM_dq)]; see od.describe("inverse_dynamics_second_partials")."""
    size = {i: model.coordinates[i][3] for i in model.bodies}
    hops, screws, effects, joined = _one_by_one(model, size, q, V, W)
    inward, carry, meet, read = packed.inward(), packed.carry(), packed.meet(), packed.read()
    projected, path = {}, {}
    for j in model.bodies:
        p = model.parent[j]
        path[j] = [*path.get(p, []), *((j, r) for r in range(size[j]))]
        above = [_each(inward, len(path[p]), 0)(hops[j], projected[p])] if p else []
        projected[j] = ca.horzcat(*above, screws[j])
    values, below = _Values(), {i: [] for i in model.bodies}
    for j in model.reversed_bodies:
        coordinates = [(j, t) for t in range(size[j])] + [c for more, _ in below[j] for c in more]
        at, n, D = ca.horzcat(effects[j], *(x for _, x in below[j])), len(coordinates), len(path[j])
        for t in range(size[j]):
            wrenches = _each(meet, n, 1)(at, screws[j][:, t])
            numbers = _each(_each(read, D, 0), n, 1)(wrenches, projected[j])
            own = joined[j][:, t :: size[j]].T @ projected[j][:6, :] if joined[j] is not None else None
            values.enter((j, t), coordinates, path[j], numbers, own)
        if model.parent[j]:
            below[model.parent[j]].append((coordinates, _each(carry, n, 0)(hops[j], at)))
    return [values.tensors(model)]


def _one_by_one(model, size, q, V, W):
    """By body: hops (12,), screws (24, coordinates), effects (39, coordinates), wrenches joined (6, pairs of its
    coordinates), None for joints of one."""
    column = ca.horzsplit(packed.bodies(model, W)(q, *V, *(W or [])), 1)
    move, screw, gather, effect = packed.move(), packed.screw(), packed.gather(), packed.effect()
    motion, sums = {0: ca.MX(ca.vertcat(ca.DM.zeros(9), -model.gravity))}, {}
    hops, screws, effects, joined = {}, {}, {}, {}
    for i in model.bodies:
        hops[i] = column[i - 1][:12]
        before, motion[i], sums[i] = move(column[i - 1], motion[model.parent[i]])
        screws[i] = _each(screw, size[i], 0, 1)(before, motion[i], ca.MX(ca.densify(model.S[i])))
    for i in model.reversed_bodies:
        if model.parent[i]:
            sums[model.parent[i]] = sums[model.parent[i]] + gather(hops[i], sums[i])
        effects[i] = _each(effect, size[i], 0)(sums[i], screws[i])
        n, joined[i] = size[i] ** 2, None
        if size[i] > 1:
            first, second = (ca.horzcat(*(screws[i][:, c] for c in x)) for x in _square(size[i]))
            joined[i] = _each(packed.join(), n, 0)(sums[i], first, second)
    return hops, screws, effects, joined


def _square(n):
    """Numbers p and t of all pairs, t changing first."""
    return [p for p in range(n) for _ in range(n)], [t for _ in range(n) for t in range(n)]


def _each(function, n, *shared):
    """The function for n columns side by side, but for the arguments `shared` by all."""
    return function if n == 1 else function.map(f"{function.name()}_{n}", "serial", n, list(shared), [])


class _Values:
    """All numbers, one below the other, and which of them is which entry of the tensors."""

    def __init__(self):
        self.parts, self.size = [], 0
        self.qq, self.vv, self.qv, self.dM = {}, {}, {}, {}

    def enter(self, j, coordinates, path, numbers, joined):
        """Keep the numbers of the coordinate j = (joint, t): numbers (16, path and coordinates below), joined (own
        coordinates, path)."""
        start, n = self.size, len(packed.READ)
        self._keep(numbers)
        own, rows = self.size, 0 if joined is None else joined.shape[0]
        if joined is not None:
            self._keep(joined)
        for row, i in enumerate(coordinates):
            for column, k in enumerate(path):
                first = start + n * (column + len(path) * row)
                place = {name: first + x for x, name in enumerate(packed.READ)}
                if row < rows:
                    place["joined"] = own + row + rows * column
                self._enter(i, j, k, place)

    def _keep(self, x):
        self.parts.append(ca.vec(x))
        self.size += x.numel()

    def _enter(self, i, j, k, place):
        """Coordinates i = (joint, number), j and k, each above the one before or of the same joint; lines of
        Algorithm 1 on the right."""
        other, above = j[0] != i[0], k[0] != j[0]
        self.qq[i, j, k] = place["i_qq"]  # 44
        self.qv[i, k, j] = place["i_vq"]
        if other:
            self.qq[j, k, i] = self.qq[j, i, k] = place["j_qq"]  # 46
            self.qv[j, i, k] = place["j_qv"]  # 47
            self.qv[j, k, i] = place["j_vq"]  # 48
            self.vv[j, k, i] = self.vv[j, i, k] = place["j_vv"]  # 49
            self.dM[k, j, i] = self.dM[j, k, i] = place["jk_i"]  # 50
        if above:
            self.qq[i, k, j] = place["i_qq"]  # 53
            self.qq[k, i, j] = place["k_qq"]
            self.vv[i, j, k] = self.vv[i, k, j] = place["i_vv"]  # 54
            self.qv[i, j, k] = place["i_qv"]  # 55
            self.qv[k, j, i] = place["k_qv"]  # 56
            self.dM[k, i, j] = self.dM[i, k, j] = place["ik_j"]  # 57
        if above and other:
            self.qq[k, j, i] = place["k_qq"]  # 59
            self.qv[k, i, j] = place["k_vq"]  # 60
            self.vv[k, i, j] = self.vv[k, j, i] = place["k_vv"]  # 61
        if above and not other:
            self.vv[k, j, i] = place.get("joined", place["k_vv_one"])  # 63
        if not above:
            self.vv[i, j, k] = place["i_vv_own"]  # 66

    def tensors(self, model):
        """(d2tau_dqdq, d2tau_dvdv, d2tau_dqdv, dM_dq) as sparse MX."""
        nv, start, every = model.robot.nv, {i: model.coordinates[i][2] for i in model.bodies}, pattern(model)
        numbers, out = ca.vertcat(*self.parts), []
        entries = list(zip(*every.get_triplet(), strict=True))
        for places in (self.qq, self.vv, self.qv, self.dM):
            at = {}
            for coordinates, place in places.items():
                i, j, k = (start[body] + column for body, column in coordinates)
                at[i + nv * j, k] = place
            wanted = [entry for entry in entries if entry in at]
            rows, columns = zip(*wanted, strict=True) if wanted else ((), ())
            own = ca.Sparsity.triplet(*every.shape, rows, columns)
            out.append(ca.MX(own, numbers[[at[entry] for entry in wanted]]))
        return tuple(out)
