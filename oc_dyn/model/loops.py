"""Robots with loops: a tree that is cut open, and what closes it.

A Loop holds a frame of one link to a frame of another; a Coupling gives a coordinate as a function of others. The
robot's own q are its independent coordinates; `tree` has all of them, q of the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import ModelError, ShapeError
from ..numbers import are_sane, as_floats
from ..types import Array, Numbers
from .assembly import assembled, chosen_independent, closed
from .inertia import Inertia
from .loop_joints import Coupling, Loop
from .modes import modes, random_closed
from .robot import Joint, Robot


@dataclass(frozen=True, eq=False)
class LoopRobot(Robot):
    """A Robot with loops, or couplings of joints: what it has of a Robot is in its independent coordinates.

    tree: the Robot cut open, with all coordinates. loops, couplings: what closes it. home (tree.nq,): how it was
    assembled when it was built. Made by RobotBuilder.close_loop and couple, and by files with loops.
    """

    tree: Robot = None  # type: ignore[assignment]
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    home: Array = field(default_factory=lambda: np.zeros(0))

    @property
    def features(self) -> frozenset[str]:
        """As of a Robot; "loop" is one of them."""
        return self.tree.features | {"loop"}

    @property
    def independent(self) -> tuple[str, ...]:
        """Names of the joints that own the robot's coordinates."""
        return tuple(j.name for j in self.joints)

    @property
    def dependent(self) -> tuple[str, ...]:
        """Names of the joints whose coordinates follow, in the order of the tree."""
        own = set(self.independent)
        return tuple(j.name for j in self.tree.joints if j.name not in own)

    def rows(self, which: str, names: Sequence[str]) -> list[int]:
        """Rows of tree.q (which="q") or tree.v ("v") of these joints."""
        out: list[int] = []
        for name in names:
            j = self.tree.joint(name)
            first, size = (j.q_index, j.nq) if which == "q" else (j.v_index, j.nv)
            out += range(first, first + size)
        return out

    def neutral(self) -> Array:
        """(nq,) independent coordinates as the robot was assembled when it was built."""
        return self.home[self.rows("q", self.independent)]

    def _again(self, tree: Robot) -> LoopRobot:
        """The same loops on a tree that was changed."""
        return close_tree(tree, self.loops, self.couplings, self.independent, start=self.home)

    def locked(self, joints: Mapping[str, Numbers]) -> Robot:
        """Refused: joints of a robot with loops are held by limits, or in its tree before loops are closed."""
        raise ModelError(self.name, ["its loops are closed; lock joints when it is built, build(lock={joint: value})"])

    def with_payload(self, frame: str, inertia: Inertia, name: str = "payload", *, check_inertia: bool = True) -> Robot:
        """As of a Robot."""
        return self._again(self.tree.with_payload(frame, inertia, name, check_inertia=check_inertia))

    def without_payload(self, name: str = "payload") -> Robot:
        """As of a Robot."""
        return self._again(self.tree.without_payload(name))

    def with_frame(
        self, name: str, frame: str, translation: Numbers = (0.0, 0.0, 0.0), rotation: Numbers | None = None,
    ) -> Robot:  # fmt: skip
        """As of a Robot."""
        return self._again(self.tree.with_frame(name, frame, translation, rotation))

    def with_gravity(self, gravity: Numbers) -> Robot:
        """As of a Robot."""
        return self._again(self.tree.with_gravity(gravity))

    def with_snapped_angles(self, tolerance: float = 1e-5) -> Robot:
        """As of a Robot."""
        return self._again(self.tree.with_snapped_angles(tolerance))

    def parameter_values(self, parts: str | Iterable[str] = "symbolic") -> Array:
        """As of the tree: armature and viscous are of all its velocities."""
        return self.tree.parameter_values(parts)

    def parameter_rows(self, parts: str | Iterable[str] = "symbolic") -> tuple[str, ...]:
        """As of the tree."""
        return self.tree.parameter_rows(parts)

    def close(self, q: Numbers) -> Array:
        """(tree.nq,) or (tree.nq, N): all coordinates with the loops closed, the independent ones as they are.

        q: of the tree, dependent coordinates near those that are wanted, of which the nearest are taken; of several
        columns, a motion, only the first needs to be near: each begins where the one before ended. Raises ModelError
        where loops cannot be closed, which names them, ShapeError.
        """
        return closed(self, q)

    def mode(self, q: Numbers) -> dict[str, str]:
        """{loops: "+" or "-"}: on which side of its singular configurations each group of loops is assembled at q of
        the tree (tree.nq,), the sign of the determinant that the dependent coordinates are solved with. Motions that
        keep all their modes are never singular. Overconstrained loops in space have no such determinant: their sign is
        that at home where following them from there leads to q, and no singular position lies between. Raises
        ShapeError."""
        return modes(self, q)

    def random_configuration(self, seed: int | np.random.Generator | None = None) -> Array:
        """(nq,) independent coordinates within the limits at which the loops close, dependent joints within theirs.

        seed: as of a Robot. Raises ModelError where 1000 tries find none.
        """
        return random_closed(self, np.random.default_rng(seed))[self.rows("q", self.independent)]

    def __repr__(self) -> str:
        size = f"{len(self.bodies)} bodies, {len(self.loops)} loops, nq = {self.nq}, nv = {self.nv}"
        return f"<oc_dyn.LoopRobot {self.name!r}: {size}>"


def close_tree(
    tree: Robot, loops: Sequence[Loop], couplings: Sequence[Coupling] = (), independent: Sequence[str] | None = None,
    start: Numbers | Mapping[str, Numbers] | None = None,
) -> LoopRobot:  # fmt: skip
    """LoopRobot of a tree with what closes it.

    independent: names of the joints whose coordinates are the robot's, by default those asked for by loops and, as far
    as they leave the choice, those with which the others are best determined. start: where assembly starts, q of the
    tree (tree.nq,) or {joint: value}, zero for those left out. Raises ModelError, UnknownName, ShapeError.
    """
    loops, couplings = tuple(loops), tuple(couplings)
    _check_couplings(tree, couplings)
    for name in independent or ():
        tree.joint(name)
    draft = LoopRobot(**_of_tree(tree, tree.joints), tree=tree, loops=loops, couplings=couplings)
    wanted = independent if independent is not None else [n for x in loops for n in x.independent]
    q = assembled(draft, _start(tree, start), wanted)
    names = chosen_independent(draft, q, independent)
    return replace(draft, **_of_joints(tree, names), home=q)


def _of_tree(tree: Robot, joints: Sequence[Joint]) -> dict[str, Any]:
    facts = {k: getattr(tree, k) for k in Robot.__dataclass_fields__ if k != "_made"}
    return {**facts, "joints": tuple(joints)}


def _of_joints(tree: Robot, names: Sequence[str]) -> dict[str, Any]:
    """joints, mimics, nq, nv of a robot whose own coordinates are those of these joints."""
    joints, nq, nv, place = [], 0, 0, {}
    for j in tree.joints:
        if j.name in names:
            joints.append(replace(j, q_index=nq, v_index=nv))
            place[j.name] = nq, nv
            nq, nv = nq + j.nq, nv + j.nv
    mimics = [
        replace(j, q_index=place[j.mimic.joint][0], v_index=place[j.mimic.joint][1])
        for j in tree.mimics
        if j.mimic is not None and j.mimic.joint in place
    ]
    limits = {"velocity_limits": None} if tree.velocity_limits is not None else {}
    return {"joints": tuple(joints), "mimics": tuple(mimics), "nq": nq, "nv": nv, **limits}


def _check_couplings(tree: Robot, couplings: Sequence[Coupling]) -> None:
    """Couplings name joints of one coordinate that own it, each once, and do not chase each other."""
    known: set[str] = set()
    for c in couplings:
        for name in (c.joint, *c.of):
            if tree.joint(name).nq != 1 or name not in [j.name for j in tree.joints]:
                raise ModelError(tree.name, [f"{c.name}: joint {name!r} needs one coordinate of its own"])
        if c.joint in known:
            raise ModelError(tree.name, [f"{c.name}: there are two"])
        known.add(c.joint)
    left = {c.joint: set(c.of) & known for c in couplings}
    while left:
        done = [name for name, of in left.items() if not of & set(left)]
        if not done:
            raise ModelError(tree.name, [f"couplings of {', '.join(left)} depend on each other in a circle"])
        for name in done:
            del left[name]


def _start(tree: Robot, start: Any) -> Array:
    q = tree.neutral()
    if start is None:
        return q
    if isinstance(start, Mapping):
        for name, value in start.items():
            j = tree.joint(name)
            numbers = as_floats(f"start: joint {name}", value).ravel()
            if numbers.size != j.nq or not are_sane(numbers):
                raise ShapeError(f"start: joint {name} got {numbers.tolist()}, expected {j.nq} finite number(s)")
            q[j.q_index : j.q_index + j.nq] = numbers
        return q
    q = as_floats("start", start).ravel()
    if q.size != tree.nq or not are_sane(q):
        raise ShapeError(f"start: got {q.tolist()}, expected {tree.nq} finite numbers, the coordinates of the tree")
    return q.copy()
