"""The screws of all joints on the path to a body, seen in its axes, and wrenches there, read by these joints."""

from dataclasses import dataclass

import casadi as ca

from ..lie.quick import dot
from ..lie.so3 import skew
from ..working_axes.rotations import cross
from ..working_axes.screws import JointScrews

_WIDE = 3  # a joint of this many coordinates reads wrenches in its own axes: carrying them takes less than its screws


@dataclass
class ProjectedScrews:
    """The JointScrews of a joint in the axes of a body below, and, for a wide joint, the pose (R, p) of these axes in
    the joint's working axes."""

    screws: JointScrews
    pose: tuple | None

    def moved(self, frame):
        """The same in the working axes of a body below, from those that its `frame` hangs on."""
        P = skew(frame.p)
        screws = self.screws.each(lambda w, u: (frame.inward(w), frame.inward(u - P @ w)))
        return ProjectedScrews(screws, self.pose and (self.pose[0] @ frame.R, self.pose[0] @ frame.p + self.pose[1]))

    def inward(self, turn):
        """The same in the turned axes."""
        return ProjectedScrews(self.screws.inward(turn), self.pose and (turn.inward(self.pose[0].T).T, self.pose[1]))


class PathScrews:
    """Screws of the joints on the path to each body: working[j] and body[j] are {k: ProjectedScrews}, in the working
    axes and in the body's axes of body j."""

    def __init__(self, model, trees):
        self.trees, self.screws = trees, trees.screws
        self.working, self.body = {}, {}
        for j in model.bodies:
            frame, above, screws = trees.frames[j], model.parent[j], trees.screws[j]
            pose = (ca.SX.eye(3), ca.SX(3, 1)) if screws.size >= _WIDE else None
            source = (self.working if frame.parallel else self.body)[above] if above else {}
            projected = {k: x.moved(frame) for k, x in source.items()} | {j: ProjectedScrews(screws, pose)}
            self.working[j] = self.body[j] = projected
            if not frame.turn.identity:
                self.body[j] = {k: x.inward(frame.turn) for k, x in projected.items()}

    def climb(self, i, effect):
        """From body i to the root: (j, {k: ProjectedScrews}, effect), all in the same axes of body j."""
        yield i, self.working[i], effect
        for j, x, working in self.trees.climb(i, effect):
            yield j, (self.working if working else self.body)[j], x

    def reader(self, projected, k, j):
        """WrenchReader of joint k for wrenches in the axes of body j, to which the screws are `projected`."""
        far = k != j and projected[k].pose
        return WrenchReader(self.screws[k] if far else projected[k].screws, projected[k].pose if far else None)


class WrenchReader:
    """Products of wrenches with the fields s, psi, psi2 and rate of a joint: rows (1, nv_k). A wrench is (moment,
    force), force None where only its moment is there; it is carried by `pose` first if there is one."""

    def __init__(self, screws, pose):
        self.screws, self.pose = screws, pose

    def s(self, wrench):
        """Rows s^T of a wrench on the path's screws."""
        return self._row(wrench, self.screws.s)

    def psi(self, wrench):
        """Rows psi^T of a wrench."""
        return self._row(wrench, self.screws.psi)

    def psi2(self, wrench):
        """Rows psi2^T of a wrench."""
        return self._row(wrench, self.screws.psi2)

    def rate(self, wrench):
        """Rows of the screws' rates, transposed, times a wrench."""
        return self._row(wrench, self.screws.rate)

    def _row(self, wrench, field):
        n, f = self._carried(wrench) if self.pose else wrench
        row = dot(n, field[0])
        return row if f is None else row + dot(f, field[1])

    def _carried(self, wrench):
        (R, p), (n, f) = self.pose, wrench
        n = R @ n
        if f is None:
            return n, None
        f = R @ f
        return n + cross(p, f), f
