"""The bodies of a robot in working axes: motions outward, sums over subtrees inward, effects on the joints above."""

from dataclasses import dataclass

import casadi as ca

from .frames import working_frames
from .rotations import PlaneRotation, cross
from .sums import CompositeSums


class WorkingTree:
    """frames: {body: WorkingFrame} at q (nq,). working, body: {body: its motion} in its working and body axes, of the
    ground to begin with. W (6, bodies): applied wrenches, if any.

    A subclass fills in the motions with move(), then calls collect(); sum(i) is asked for once for every body, tips
    first.
    """

    def __init__(self, model, q, ground=None, W=None):
        self.model = model
        self.frames = self._placed(q)
        self.working, self.body = {0: ground}, {0: ground}
        self._applied = None if W is None else model.wrenches(W)

    def _placed(self, q):
        return working_frames(self.model, self.model.joint_q(q))

    def above(self, i):
        """Motion of the parent of body i, in the axes that its frame hangs on."""
        p = self.model.parent[i]
        return self.working[p] if self.frames[i].parallel else self.body[p]

    def move(self, i, motion, before):
        """Motion of body i in both its axes: motion(*before) of vectors `before` that the parent carries to its working
        axes; the joint's own part is the same in both."""
        turn = self.frames[i].turn
        self.working[i] = self.body[i] = motion(*before)
        if not turn.identity:
            self.body[i] = motion(*(turn.inward(x) for x in before))

    def collect(self, kind, own):
        """Sum integrals of a kind (a subclass of MassIntegrals); own(i, motion, turn): those of body i alone, from its
        motion, in axes from which `turn` turns its constants."""

        def alone(i, early):
            motion = (self.working if early else self.body).get(i)
            return own(i, motion, self.frames[i].turn if early else PlaneRotation())

        self.sum = CompositeSums(self.model, self.frames, kind.zero(), alone).sum

    def applied(self, i, turn):
        """Moment and force applied to body i, in axes from which `turn` turns; zeros if there are none."""
        return (0, 0) if self._applied is None else [turn.outward(x) for x in ca.vertsplit(self._applied[i], 3)]

    def climb(self, i, x):
        """From body i to the root with what has moved(frame) and turned(turn): yields (j, x, working) for every body j
        above i, x in the working axes of j, or in its body axes if not `working`: those of the last body, as turning
        its joint's few fields is less."""
        frame, j = self.frames[i], self.model.parent[i]
        while j:
            x, working, frame = x.moved(frame), frame.parallel, self.frames[j]
            if not working and self.model.parent[j]:
                x, working = x.turned(frame.turn), True
            yield j, x, working or frame.turn.identity
            j = self.model.parent[j]


@dataclass
class Carried:
    """Wrenches, pairs of columns (moment, force), and vectors, carried from body to body. The first of both belong
    together: products of one motion with the accelerations and with the velocities of the subtree. As the velocities
    gain the drift, the vector gains drift x force."""

    wrenches: list
    vectors: tuple | list = ()

    def moved(self, frame):
        """The same about the parent's origin, in the axes of it that `frame` hangs on, by the parent's observer."""
        wrenches, vectors = [frame.wrench(*x) for x in self.wrenches], [frame.outward(x) for x in self.vectors]
        if frame.drift is not None:
            vectors[0] = vectors[0] + cross(frame.drift, wrenches[0][1])
        return Carried(wrenches, vectors)

    def turned(self, turn):
        """The same in the axes from which `turn` turns."""
        wrenches = [tuple(turn.outward(x) for x in pair) for pair in self.wrenches]
        return Carried(wrenches, [turn.outward(x) for x in self.vectors])
