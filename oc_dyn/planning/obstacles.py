"""What planners know of a scene: what its pairs have to keep, and how far apart they are at configurations."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import casadi as ca
import numpy as np

from ..errors import LimitError, ModelError, ShapeError
from ..function import function
from ..model.loops import LoopRobot
from ..model.robot import Robot
from ..numbers import shortened
from ..scene import Scene, exact_distances
from ..scene.distances import smoothed_by
from ..text import terminal
from ..types import Array, Numbers
from ..validation import number
from .certificate import certify
from .clearance import KEPT, Clearance
from .trajectory import Motion

SPARE = 3e-4  # [m] that searches keep besides what is asked, so that what is certified does not fall below it
ROUNDING = 1e-7  # [m]
_SHOWN = 3  # pairs in a message
_COARSE, _DENSE = 201, 2001  # samples of a motion: before a proof, and of one that cannot be proven
_CLEARLY = 1e-3  # [m] that distances are missed by at samples where no proof is asked for


@dataclass(frozen=True, eq=False)
class Obstacles:
    """A scene for a robot, and the clearance [m] that is asked for. wanted (P,) [m]: of each pair, margins included.
    smoothed (P,) [m]: by how much the distances that programs keep are below the exact ones at most. timed (P,):
    whether they depend on the time."""

    robot: Robot
    scene: Scene
    clearance: float
    wanted: Array = field(init=False)
    smoothed: Array = field(init=False)
    names: tuple[str, ...] = field(init=False)
    timed: Any = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "wanted", self.clearance + self.scene.margins)
        object.__setattr__(self, "smoothed", smoothed_by(self.scene))
        moving = {x.name for x in self.scene.items if isinstance(x.pose, ca.Function)}
        timed = np.array([not moving.isdisjoint(pair) for pair in self.scene.pairs], bool)
        object.__setattr__(self, "timed", timed)
        object.__setattr__(self, "names", tuple(f"{a} - {b}" for a, b in self.scene.pairs))

    def distances(self, q: Numbers, t: Numbers = 0.0) -> Array:
        """(K, P) [m] at configurations (K, nq), at times (K,) or one: those that programs keep, never above the exact
        ones."""
        q = np.atleast_2d(np.asarray(q, float))
        f = function(self.robot, "distances", scene=self.scene, normalize=True)
        given = [q.T] if not self.scene.timed else [q.T, np.broadcast_to(np.asarray(t, float), (1, len(q)))]
        if len(q) == 1:
            return np.array(f(*(x[:, 0] for x in given))).reshape(1, -1)
        return np.array(f.map(len(q))(*given)).T

    def missing(self, q: Numbers, t: Numbers = 0.0) -> Array:
        """(K, P) [m] by how much each pair is nearer than wanted; below 0 where it is not."""
        return self.wanted - self.distances(q, t)

    def near(self, q: Numbers, within: float, t: Numbers = 0.0) -> Any:
        """(P,) whether pairs come nearer than wanted and `within` [m] at any of the configurations (K, nq), at times
        (K,) or one."""
        return (self.missing(q, t) > -within).any(axis=0)

    def lacking(self, q: Numbers, t: Numbers = 0.0, within: float = ROUNDING) -> Array:
        """(K, P) as `missing`, by exact distances where smoothed ones leave more than `within` [m] open."""
        q = np.atleast_2d(np.asarray(q, float))
        out, times = self.missing(q, t), np.broadcast_to(np.asarray(t, float), len(q))
        open_ = (out > within) & (out <= within + self.smoothed)
        rows, pairs = np.flatnonzero(open_.any(axis=1)), np.flatnonzero(open_.any(axis=0))
        if rows.size:
            exact = exact_distances(self.robot, self.scene, q[rows], times[rows], which=pairs)
            at = np.ix_(rows, pairs)
            out[at] = np.minimum(out[at], self.wanted[pairs] - exact)
        return out

    def free(self, q: Numbers, t: Numbers = 0.0, within: float = ROUNDING) -> Any:
        """(K,) whether configurations keep what is wanted, but for `within` [m]."""
        return (self.lacking(q, t, within) <= within).all(axis=1)

    def missing_at_ends(self, ends: Array, duration: float | None) -> Array:
        """(2, P) as `missing` at start and goal (2, nq); of what moves nothing at a goal whose time is not known."""
        out = self.missing(ends, np.array([0.0, duration or 0.0]))
        if duration is None:
            out[1, self.timed] = -np.inf
        return out

    def told(self, q: Numbers, t: float | None = 0.0) -> str:
        """Text of the pairs that are too near at one configuration, the worst first; "" if none is. t: None where the
        time is not known, and what moves does not count."""
        missing = self.lacking(q, 0.0 if t is None else t, KEPT)[0]
        missing = np.where(self.timed, -np.inf, missing) if t is None else missing
        short = np.flatnonzero(missing > KEPT)
        short = short[np.argsort(-missing[short])]
        parts = [self.pair(k, self.wanted[k] - missing[k]) for k in short[:_SHOWN]]
        return ", ".join(parts) + (f" and {len(short) - _SHOWN} pairs more" if len(short) > _SHOWN else "")

    def pair(self, k: int, d: float) -> str:
        """Text of a pair at a distance."""
        a, b = (repr(terminal(x)) for x in self.scene.pairs[k])
        if d < 0:
            return f"{a} and {b} overlap by {-d:.4g} m"
        got, wanted = f"{d:.4g}", f"{self.wanted[k]:.4g}"
        less = f", {self.wanted[k] - d:.2g} m too little" if got == wanted and d < self.wanted[k] else ""
        return f"{a} and {b} are {got} m apart, {wanted} m wanted{less}"

    def refuse(self, what: str, q: Numbers, t: float | None = 0.0, advice: str = "") -> None:
        """Raise LimitError, naming pairs and depths, where a configuration does not keep what is wanted; t as told."""
        if told := self.told(q, t):
            raise LimitError(f"{what} is in collision: {told}{advice}")


def obstacles_of(what: str, robot: Robot, scene: Any, clearance: Any, timed: bool = True) -> Obstacles | None:
    """Obstacles, or None without a scene. timed: whether what is planned has a time.

    Raises ShapeError for what is no scene, one without pairs, and poses that are not known; UnknownName for links that
    the robot does not have.
    """
    clearance = number(f"{what}: clearance [m]", clearance)
    if scene is None:
        if clearance:
            raise ShapeError(f"{what}: clearance is {clearance:g} m, but there is no scene to keep it in; give scene=")
        return None
    if isinstance(robot, LoopRobot):
        raise ModelError(what, [f"{robot.name} has loops; plans among obstacles are not there for it, leave scene out"])
    if not isinstance(scene, Scene):
        raise ShapeError(f"{what}: scene is {shortened(scene)}, expected an od.Scene")
    if not scene.pairs:
        raise ShapeError(f"{what}: the scene has no pair of shapes to keep apart; scene.attach puts shapes on links")
    if scene.moving:
        names = ", ".join(map(terminal, scene.moving))
        raise ShapeError(
            f"{what}: poses of {names} come in at a port, and are not known here; give them by scene.released"
        )
    if scene.timed and not timed:
        names = ", ".join(terminal(x.name) for x in scene.items if not x.fixed)
        raise ShapeError(
            f"{what}: poses of {names} depend on the time, but obstacles stand still here; give them by "
            "scene.released(name, pose); motion.check(scene=...) looks at a motion among obstacles that move"
        )
    scene.check_names(robot)
    function(robot, "distances", scene=scene)  # raises for links that there are not
    return Obstacles(robot, scene, clearance)


def reduced(scene: Scene, kept: Any) -> Scene:
    """The scene with those of its pairs that are kept (P,) alone, in their order; names of shapes are others."""
    names = {x.name: f"{k}: {x.name}" for k, x in enumerate(scene.items)}  # which no link has, so that pairs are told
    wanted = {frozenset((names[a], names[b])) for (a, b), keep in zip(scene.pairs, kept, strict=True) if keep}
    used = {name for pair in wanted for name in pair}
    items = tuple(replace(x, name=names[x.name]) for x in scene.items if names[x.name] in used)
    all_pairs = (frozenset((a.name, b.name)) for a, b in combinations(items, 2))
    left_out = frozenset(x for x in all_pairs if x not in wanted)
    return replace(scene, items=items, left_out=left_out, still=frozenset(), touching=frozenset())


@dataclass(frozen=True)
class Along:
    """What a whole motion keeps. missing (P,) [m]: by how much each pair is nearer than wanted somewhere, at `time`
    (P,), as proven; below 0 where it is not. proof: the Clearance, None where there is none."""

    missing: Array
    time: Array
    proof: Clearance | None

    @property
    def short(self) -> Any:
        """(P,) the pairs that are too near, by more than a micrometre."""
        return self.missing > KEPT


def told_of(seen: Along) -> dict[str, Any]:
    """{"clearance": what is proven} for the info of a motion, {} without a proof."""
    proof = seen.proof
    if proof is None or proof.nearest is None:
        return {}
    return {"clearance": {"asked": proof.asked, "certified": proof.certified, "nearest": proof.nearest.name}}


def along(around: Obstacles, motion: Motion) -> Along:
    """What a motion keeps: proven, unless samples show that it does not, or a joint has no bound of its speed."""
    seen = _sampled(around, motion, _COARSE)
    if seen.missing.max() > _CLEARLY:
        return seen
    try:
        proof = certify(motion, around.scene, around.clearance)
    except ModelError:  # a joint whose speed has no bound
        return _sampled(around, motion, _DENSE)
    missing = np.array([around.clearance - x.certified for x in proof.pairs])
    return Along(missing, np.array([x.time for x in proof.pairs]), proof)


def configurations(motion: Motion) -> Array:
    """(K, nq) along a motion, at equal times."""
    return course(motion)[0]


def course(motion: Motion) -> tuple[Array, Array]:
    """(configurations (K, nq), their times (K,) [s]) along a motion, at equal times."""
    times, q = _samples(motion, _COARSE)
    return q, times


def asked_more(spare: Array, which: Any, seen: Along) -> Array:
    """(P,) [m] that pairs are to keep besides what is wanted, more of `which` (P,): what they lacked, and a little."""
    return spare + np.where(which, 1.1 * np.maximum(seen.missing, 0.0) + 0.2 * SPARE, 0.0)


def _samples(motion: Motion, count: int) -> tuple[Array, Array]:
    times = np.linspace(motion.t[0], motion.t[-1], count)
    return times, motion.sample(times).q


def _sampled(around: Obstacles, motion: Motion, count: int) -> Along:
    times, q = _samples(motion, count)
    missing = around.lacking(q, times)
    return Along(missing.max(axis=0), times[np.argmax(missing, axis=0)], None)
