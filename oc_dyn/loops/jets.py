"""Motion of all joints of a robot with loops from that of the independent ones, any order, by Taylor coefficients.

Closed loops mean J(q) v = 0 along the motion. Split by coordinates, J_d v_d + J_i v_i = 0, so v = G v_y with
J_d G_d = -J_i, and coefficient k of G follows from those below it:

    J_d0 G_dk = -(J_ik + sum_{j=1..k} J_dj G_d(k-j)),      v_k = sum_j G_j v_y(k-j)

with one factorised J_d0 for all orders, by QR, so that of overconstrained loops all rows count. Coefficients of J come
from those of poses, grown joint by joint.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from ..kinematics.joint_jets import JointJet, function_jet
from ..lie.jets import product_at, total
from ..lie.so3 import skew
from ..model.assembly import closing_blocks, solved_rows
from ..model.canonical import canonical
from ..model.closure import sign_of
from ..model.loop_joints import Coupling, Loop
from ..model.loops import LoopRobot
from ..model.robot import Robot

Jet = list[Any]  # of Taylor coefficients
_AXES = [ca.DM.eye(3)[:, k] for k in range(3)]


class LoopJets:
    """After k + 1 calls of push, with coefficients 0..k of the independent velocities, `v` and `G` hold coefficients
    0..k of all velocities of the tree and of the matrix with v = G v_y."""

    def __init__(self, robot: LoopRobot, q: Any) -> None:
        self.robot = robot
        self.closed = RowJets(robot.tree, robot.loops, robot.couplings, q)
        self.own = robot.rows("v", robot.independent)
        self.kept = solved_rows(robot)
        self.groups = [([self.kept.index(k) for k in b.rows], b.columns) for b in closing_blocks(robot)]
        self.J: Jet = []
        self.G: Jet = []
        self.v: Jet = []
        self.vy: Jet = []
        self.factors: list[Any] = []

    def push(self, vy: Any) -> None:
        """Take the next coefficient of the independent velocities (nv,)."""
        k = len(self.v)
        self.complete(k)
        self.vy.append(vy)
        self.v.append(total(self.G[j] @ self.vy[k - j] for j in range(k + 1)))
        self.closed.push(self.v[k])

    def complete(self, order: int) -> None:
        """Coefficients of G up to `order`, for which as many of the velocities must be there."""
        if len(self.G) == order:
            self._grow(order)

    def _grow(self, k: int) -> None:
        """Coefficient k of J and G."""
        J = self.closed.next()[self.kept, :]
        self.J.append(J)
        if not k:
            self.factors = [ca.qr(ca.densify(J[rows, columns])) for rows, columns in self.groups]
        G = ca.SX(J.shape[1], len(self.own))
        if not k:
            for n, row in enumerate(self.own):
                G[row, n] = 1
        for (rows, columns), (Q, R) in zip(self.groups, self.factors, strict=True):
            b = J[rows, self.own]
            for j in range(1, k + 1):
                b = b + self.J[j][rows, columns] @ self.G[k - j][columns, :]
            used = [c for c in range(b.shape[1]) if b[:, c].nnz()]
            if used:
                G[columns, used] = ca.solve(R, Q.T @ ca.densify(-b[:, used]))
        self.G.append(G)


class RowJets:
    """Rows of J, the Jacobian by all velocities of what loops and couplings hold, coefficient by coefficient: `next`
    gives coefficient k after k calls of push."""

    def __init__(
        self, tree: Robot, loops: Sequence[Loop], couplings: Sequence[Coupling], q: Any,
        contacts: Sequence[tuple[str, str]] = (),
    ) -> None:  # fmt: skip
        self.model, self.q = canonical(tree), [q]
        model, parts = self.model, self.model.joint_q(q)
        frames = [tree.frame(name) for name, _ in contacts]
        self.joint = {i: JointJet(model, i, parts[i]) for i in _moving(loops, frames, model)}
        self.poses = _Poses(model, self.joint)
        self.rows: list[Any] = [_LoopRows(model, self.poses, loop) for loop in loops]
        self.rows += [_CouplingRow(tree, c) for c in couplings]
        self.rows += [_ContactRows(model, self.poses, f, kind) for f, (_, kind) in zip(frames, contacts, strict=True)]
        self.nv, self.count = tree.nv, 0

    def push(self, v: Any) -> None:
        """Take the next coefficient of the velocities (nv,)."""
        parts = self.model.joint_v(v)
        for i, joint in self.joint.items():
            joint.push(parts[i])
        self.q.append(v / len(self.q))  # of joints whose rates are their velocities; others are on no coupling

    def next(self) -> Any:
        """The next coefficient of J, (rows, nv)."""
        k, self.count = self.count, self.count + 1
        self.poses.grow(k)
        return ca.vertcat(ca.SX(0, self.nv), *(row.coefficient(k, self.nv, self.q) for row in self.rows))


def _moving(loops, frames, model):
    """Numbers of the bodies between the ends of loops, and between frames and the ground."""
    found = {i for f in frames for i in model.support(model.number[f.body])}
    for loop in loops:
        a, b = (set(model.support(model.number[x])) for x in loop.bodies)
        found |= a ^ b
    return sorted(found)


class _Poses:
    """Coefficients of poses (R, p) of bodies in the frame of a body above them, by (above, body)."""

    def __init__(self, model, joint) -> None:
        self.model, self.joint = model, joint
        self.paths: dict[tuple[int, int], list[int]] = {}
        self.R: dict[tuple[int, int], Jet] = {}
        self.p: dict[tuple[int, int], Jet] = {}
        self.turn: dict[int, Jet] = {i: [] for i in joint}  # rotations of bodies in their parents

    def add(self, above: int, body: int) -> None:
        """A body whose pose is wanted, and all between."""
        path = [i for i in self.model.support(body) if i not in self.model.support(above)]
        self.paths[above, body] = path
        self.R.setdefault((above, above), [])
        self.p.setdefault((above, above), [])
        for i in path:
            self.R.setdefault((above, i), [])
            self.p.setdefault((above, i), [])

    def grow(self, k: int) -> None:
        """Coefficient k of all of them, from k coefficients of the velocities."""
        for i, joint in self.joint.items():
            units = [[e] + [ca.DM.zeros(3)] * k for e in _AXES]
            self.turn[i].append(ca.SX(ca.horzcat(*(joint.outward_at(x, k) for x in units))))
        done = set()
        for (above, _), path in self.paths.items():
            if above not in done:
                self.R[above, above].append(ca.SX(ca.DM.eye(3)) if k == 0 else ca.SX(3, 3))
                self.p[above, above].append(ca.SX(3, 1))
                done.add(above)
            before = above
            for i in path:
                if len(self.R[above, i]) == k:
                    R, p = self.R[above, before], self.p[above, before]
                    self.R[above, i].append(product_at(R, self.turn[i], k, lambda a, b: a @ b))
                    arm = product_at(R, self.joint[i].p, k, lambda a, b: a @ b)
                    self.p[above, i].append(p[k] + arm)
                before = i

    def subspace(self, i: int, k: int):
        """Coefficient k of the motion subspace of joint i in its body's frame."""
        joint = self.joint[i]
        if joint.kind != "transform":
            return ca.SX(ca.DM(joint.S)) if k == 0 else None
        if k:
            joint.known_at(k)
        return joint.S_jet[k]

    def twists(self, above: int, i: int, k: int) -> tuple[Jet, Jet]:
        """Coefficients 0..k of the unit twists (3, nv_i) of joint i at its origin, in the frame of the body above."""
        R = self.R[above, i]
        S = [self.subspace(i, n) for n in range(k + 1)]
        w, u = [], []
        for n in range(k + 1):
            w.append(total(R[n - j] @ S[j][:3, :] for j in range(n + 1) if S[j] is not None))
            u.append(total(R[n - j] @ S[j][3:, :] for j in range(n + 1) if S[j] is not None))
        return w, u


def _in_canonical(model, body, R, p):
    """A pose in the author's frame of a body, in its canonical frame."""
    if not body:
        return ca.DM(R), ca.DM(p)
    C, c = (ca.DM(x) for x in model.to_body[body])
    return C.T @ ca.DM(R), C.T @ (ca.DM(p) - c)


class _LoopRows:
    """Rows of J of a loop, in the order of closure.loop_rows."""

    def __init__(self, model, poses: _Poses, loop) -> None:
        self.model, self.poses, self.loop = model, poses, loop
        self.ends = [model.number[x] for x in loop.bodies]
        paths = [model.support(x) for x in self.ends]
        common = [i for i in paths[0] if i in paths[1]]
        self.above = common[-1] if common else 0
        for x in self.ends:
            poses.add(self.above, x)
        self.frames = [
            _in_canonical(model, x, R, p)
            for x, R, p in zip(
                self.ends, (loop.rotation_a, loop.rotation_b), (loop.translation_a, loop.translation_b), strict=True
            )
        ]
        self.signs = [(i, -1) for i in poses.paths[self.above, self.ends[0]]]
        self.signs += [(i, 1) for i in poses.paths[self.above, self.ends[1]]]
        self.turns = _turn_rows(loop.directions)
        self.axes: list = [[], []]
        self.points: list = [[], []]
        self.cross: list = []

    def coefficient(self, k: int, nv: int, q):
        """Coefficient k of the rows."""
        del q
        for n, (end, (R, p)) in enumerate(zip(self.ends, self.frames, strict=True)):
            own = self.poses.R[self.above, end][k]
            self.axes[n].append(own @ R)
            self.points[n].append(self.poses.p[self.above, end][k] + own @ p)
        a, b = self.axes
        self.cross.append(
            [
                total(c * product_at([x[:, n] for x in b], [x[:, m] for x in a], k, ca.cross) for c, m, n in terms)
                for terms in self.turns
            ]
        )
        out = ca.SX(len(self.loop.directions), nv)
        places = ["xyz".index(x) for x in self.loop.directions if x in ("x", "y", "z")]
        for i, sign in self.signs:
            w, u = self.poses.twists(self.above, i, k)
            first, size = self.model.coordinates[i][2:]
            scale = sign * self.model.rule[i][0]
            arm = [x - y for x, y in zip(self.points[1], self.poses.p[self.above, i], strict=False)]
            for row, axis in enumerate(places):
                e = [x[:, axis] for x in a]
                moment = [product_at(arm, e, n, ca.cross) for n in range(k + 1)]
                value = product_at(u, e, k, lambda x, y: x.T @ y) + product_at(w, moment, k, lambda x, y: x.T @ y)
                out[row, first : first + size] += scale * value.T
            for row in range(len(self.turns)):
                c = [x[row] for x in self.cross]
                value = product_at(w, c, k, lambda x, y: x.T @ y)
                out[len(places) + row, first : first + size] += scale * value.T
        return out


def _turn_rows(directions):
    """[[(coefficient, m, n)]] of the rows about turns: sums of coefficient times axis m of a times axis n of b."""
    turns = ["xyz".index(x[1]) for x in directions if x[0] == "r"]
    if len(turns) == 3:
        return [[(0.5, (k + 2) % 3, (k + 1) % 3), (-0.5, (k + 1) % 3, (k + 2) % 3)] for k in range(3)]
    if len(turns) == 2:
        axis = 3 - sum(turns)
        return [[(sign_of(t, axis), 3 - t - axis, axis)] for t in turns]
    return [[(1, (turns[0] + 2) % 3, (turns[0] + 1) % 3)]] if turns else []


class _ContactRows:
    """Rows of J of a frame in contact with the ground: velocities of its origin, above them for a surface its angular
    velocity, in root axes."""

    def __init__(self, model, poses: _Poses, frame, kind: str) -> None:
        self.model, self.poses, self.turns = model, poses, kind == "surface"
        self.end = model.number[frame.body]
        poses.add(0, self.end)
        self.place = _in_canonical(model, self.end, frame.rotation, frame.translation)[1]
        self.point: Jet = []

    def coefficient(self, k: int, nv: int, q):
        """Coefficient k of the rows."""
        del q
        self.point.append(self.poses.p[0, self.end][k] + self.poses.R[0, self.end][k] @ self.place)
        out = ca.SX(6 if self.turns else 3, nv)
        for i in self.poses.paths[0, self.end]:
            w, u = self.poses.twists(0, i, k)
            first, size = self.model.coordinates[i][2:]
            arm = [x - y for x, y in zip(self.point, self.poses.p[0, i], strict=False)]
            crossed = product_at(arm, w, k, lambda a, b: -skew(a) @ b)
            columns = ca.vertcat(w[k], u[k] + crossed) if self.turns else u[k] + crossed
            out[:, first : first + size] += self.model.rule[i][0] * columns
        return out


class _CouplingRow:
    """Row of J of a coupling: one for its joint, minus the gradient of its function for the others."""

    def __init__(self, tree, coupling) -> None:
        x = ca.SX.sym("x", len(coupling.of))
        slope = ca.gradient(coupling.function(x), x)
        self.gradient = ca.Function("gradient", [x], [ca.densify(slope)])
        self.joint = tree.joint(coupling.joint)
        self.of = [tree.joint(name) for name in coupling.of]

    def coefficient(self, k: int, nv: int, q):
        """Coefficient k of the row."""
        x = [ca.vertcat(*(y[j.q_index if n == 0 else j.v_index] for j in self.of)) for n, y in enumerate(q[: k + 1])]
        g = function_jet(self.gradient, x)
        out = ca.SX(1, nv)
        if k == 0:
            out[0, self.joint.v_index] = 1
        for n, j in enumerate(self.of):
            out[0, j.v_index] = -g[n]
        return out
