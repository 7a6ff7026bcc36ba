"""The screws of all joints on the path to a body, seen in its axes, and wrenches there, read by these joints."""

from dataclasses import dataclass

import casadi as ca

from ..kinematics.step import cross
from ..lie.so3 import skew
from .subtrees import Screws

_WIDE = 3  # a joint of this many coordinates reads wrenches in its own axes: carrying them takes less than its screws


@dataclass
class Seen:
    """A joint seen in some axes: its Screws, and, for a wide joint, the pose (R, p) of the axes in the joint's working
    axes."""

    screws: Screws
    pose: tuple | None

    def moved(self, frame):
        """The same in the working axes of a body below, from those that its `frame` hangs on."""
        P = skew(frame.p)
        screws = self.screws.each(lambda w, u: (frame.inward(w), frame.inward(u - P @ w)))
        return Seen(screws, self.pose and (self.pose[0] @ frame.R, self.pose[0] @ frame.p + self.pose[1]))

    def inward(self, turn):
        """The same in the turned axes."""
        screws = self.screws.each(lambda w, u: (turn.inward(w), turn.inward(u)))
        return Seen(screws, self.pose and (turn.inward(self.pose[0].T).T, self.pose[1]))


class Views:
    """What each body sees of the joints on its path: working[j] and body[j] are {k: Seen}, in the working axes and
    in the body's axes of body j."""

    def __init__(self, model, trees):
        self.model, self.frames, self.screws = model, trees.frames, trees.screws
        self.working, self.body = {}, {}
        for j in model.bodies:
            frame, above, screws = trees.frames[j], model.parent[j], trees.screws[j]
            pose = (ca.SX.eye(3), ca.SX(3, 1)) if screws.size >= _WIDE else None
            source = (self.working if frame.parallel else self.body)[above] if above else {}
            seen = {k: x.moved(frame) for k, x in source.items()} | {j: Seen(screws, pose)}
            self.working[j] = seen
            self.body[j] = seen if frame.angle is None else {k: x.inward(frame.turn) for k, x in seen.items()}

    def climb(self, i, effect):
        """From body i to the root: (j, {k: Seen}, effect), all in the same axes of body j."""
        yield i, self.working[i], effect
        frame, j = self.frames[i], self.model.parent[i]
        while j:
            effect, parallel, frame = effect.moved(frame), frame.parallel, self.frames[j]
            if parallel or frame.angle is None:
                yield j, self.working[j], effect
            elif self.model.parent[j]:
                effect = effect.turned(frame.turn)
                yield j, self.working[j], effect
            else:  # the last one: turning the joint's own fields is less
                yield j, self.body[j], effect
            j = self.model.parent[j]

    def reader(self, seen, k, j):
        """Reader of joint k for wrenches in the axes of body j in which it is `seen`."""
        far = k != j and seen[k].pose
        return Reader(self.screws[k] if far else seen[k].screws, seen[k].pose if far else None)


class Reader:
    """Products of wrenches with the fields s, psi, psi2 and rate of a joint: rows (1, nv_k). A wrench is (moment,
    force), force None where only its moment is there; it is carried by `pose` first if there is one."""

    def __init__(self, screws, pose):
        self.screws, self.pose = screws, pose

    def s(self, wrench):
        return self._row(wrench, self.screws.s)

    def psi(self, wrench):
        return self._row(wrench, self.screws.psi)

    def psi2(self, wrench):
        return self._row(wrench, self.screws.psi2)

    def rate(self, wrench):
        return self._row(wrench, self.screws.rate)

    def _row(self, wrench, field):
        n, f = self._carried(wrench) if self.pose else wrench
        row = n.T @ field[0]
        return row if f is None else row + f.T @ field[1]

    def _carried(self, wrench):
        (R, p), (n, f) = self.pose, wrench
        n = R @ n
        if f is None:
            return n, None
        f = R @ f
        return n + cross(p, f), f
