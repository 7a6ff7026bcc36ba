"""A planned motion: polynomial pieces, and what is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..errors import ModelError, ShapeError
from ..model.joints import UNITS
from ..model.robot import Robot
from ..numbers import as_floats
from ..optimal_control.polynomials import derivatives_at
from ..optimal_control.solution import Solution
from ..scene.scene import Scene
from ..text import terminal
from ..types import Array, Indices, Numbers, StrPath
from ..validation import number
from . import storage
from .clearance import Clearance
from .followers import check_motion, with_followers
from .limits import Limits
from .quantities import ORDERS, RATES, order_name
from .report import Report, report, with_clearance
from .samples import Samples, read_only
from .time_scaling import check_rest, shortest_scale
from .verdict import checked_mode, report_or_raise

P = TypeVar("P", bound=StrPath)

_MOST_NUMBERS = 20_000_000  # of positions, from sampling with a step
_JUMP = 1e-6  # share of its largest value from which on the step of a derivative at a breakpoint is a jump


class Motion(Samples):
    """A planned motion, of which subclasses say what it is at any time; see Trajectory and PathMotion."""

    continuity: int
    scene: Scene | None = None  # that it was planned among; not written to files

    def _at(self, times: Array) -> list[Array]:
        raise NotImplementedError

    def on_pieces(self, piece: Indices, s: Array) -> Samples:
        """Samples at times s (K,) after the start of pieces (K,): at its end a piece is as it is before a jump."""
        raise NotImplementedError

    @property
    def duration(self) -> float:
        """Time from start to end [s]."""
        return float(self.t[-1] - self.t[0])

    def sample(self, at: Numbers) -> Samples:
        """Samples of the same polynomials at times `at`: a step [s], or an array of times.

        With a step the end is always included, so the last step may be shorter.
        """
        if np.ndim(at) == 0:
            dt: Any = at
            if not (np.isfinite(dt) and dt > 0):
                raise ShapeError(f"sample: got the step {at!r}, expected a positive number of seconds, or times")
            most = _MOST_NUMBERS // len(self.joints)
            if self.duration / dt > most:
                raise ShapeError(
                    f"sample: {self.duration:g} s in steps of {dt:g} s are {self.duration / dt:.3g} samples, of "
                    f"{most} at most; give a longer step, or the times"
                )
            steps = int(np.floor(self.duration / dt * (1 + 1e-12)))
            times = self.t[0] + dt * np.arange(steps + 1)
            if self.t[-1] - times[-1] > 1e-9 * dt:
                times = np.append(times, self.t[-1])
            times[-1] = self.t[-1]
        else:
            times = as_floats("sample: times", at).ravel()
            slack = 1e-9 * max(self.duration, 1.0)
            if times.size == 0 or not np.all((times >= self.t[0] - slack) & (times <= self.t[-1] + slack)):
                raise ShapeError(f"sample: times must be some, from {self.t[0]:g} to {self.t[-1]:g} s")
            times = np.clip(times, self.t[0], self.t[-1])
        return Samples(times, self._at(times), **self._context(), continuity=self.continuity)

    def impulses(self) -> dict[str, tuple[Array, np.ndarray[Any, np.dtype[np.bool_]]]]:
        """{quantity: (time (n,), joints (n,))} of those that are infinite at breakpoints inside the motion, where what
        they are the rate of jumps: the time of the largest jump, whether there is one.

        A velocity that jumps takes impulses of all torques, an acceleration that jumps infinite rates of them.
        """
        if len(self.t) < 3:
            return {}
        M, jumps = len(self.t) - 1, {}
        after, before = self.on_pieces(np.arange(1, M), np.zeros(M - 1)), self.on_pieces(np.arange(M), np.diff(self.t))
        inner = [x[:-1] for x in before.derivatives]
        for k, quantity in enumerate(RATES):
            jumps[quantity] = after.derivatives[k] - inner[k]
        usual = [np.ptp(self.q, axis=0) / self.duration**k for k in range(1 + len(RATES))]  # of this way
        sizes = zip(jumps, self.derivatives, usual, strict=False)
        largest = {k: np.maximum(np.abs(x).max(axis=0), size) for k, x, size in sizes}
        found, time, hit = {}, np.zeros(len(self.joints)), np.zeros(len(self.joints), bool)
        for quantity, x in jumps.items():  # what is above a rate that is infinite is so, too
            at, new = _beyond(x, largest[quantity], self.t[1:-1])
            time, hit = np.where(new & ~hit, at, time), hit | new
            if hit.any():
                found[quantity] = time, hit
        if self.robot is not None and found.keys() & {"v", "dv", "d2v"}:
            step = after.tau - before.tau[:-1]
            found["dtau"] = _beyond(step, np.abs(after.tau).max(axis=0), self.t[1:-1])
            if found.keys() & {"v", "dv"}:
                found["tau"] = found["dv" if "dv" in found else "v"][0], np.full(len(self.joints), True)
                found["dtau"] = found["tau"]
        return found

    def check(
        self, limits: Limits | None = None, dt: float = 1e-3, *, scene: Scene | None = None, clearance: float = 0.0,
    ) -> Report:  # fmt: skip
        """Report on every limit along the whole motion, on both sides of the breakpoints and between samples.

        Of robots with loops joints that follow have rows, too, where they have limits, and loops are looked at every
        dt: ModelError names those that open, or change their mode of assembly.
        q and its derivatives are looked at where they are largest; torques, and velocities that are limited by the
        position, every dt [s] and closer about the worst, in steps that grow with motions of many minutes.
        Print it, or ask .worst (largest share of a limit), .ok(tolerance), .rows. limits: default those of the plan.
        scene: an od.Scene whose pairs of shapes are to keep `clearance` [m] apart besides their margins. That is proven
        for the whole motion, between samples too; the row "clearance" and .clearance tell how far.
        """
        dt = number("check: dt", dt, above=0)
        check_motion("check", self, dt)
        found = with_followers(report(self, limits or self.limits, dt), self, dt, limits)
        if scene is not None:
            return with_clearance(found, self.clearance(scene, clearance))
        if number("check: clearance [m]", clearance):
            raise ShapeError(f"check: a clearance of {clearance:g} m is of the shapes of a scene; give scene=..., too")
        return found

    def clearance(self, scene: Scene, clearance: float = 0.0) -> Clearance:
        """Clearance that the whole motion keeps among the shapes of a Scene, proven by conservative advancement; see
        `clearance` [m] of check. Poses that are Functions take the time of the motion.

        Raises ModelError without the robot, and for transform joints; ShapeError for obstacles whose pose comes in at a
        port, and for pairs of half-spaces; UnknownName for links that the robot does not have, and for names of pairs
        left out that are known nowhere.
        """
        from .certificate import certify

        return certify(self, scene, clearance)

    def animate(
        self, path: P, fps: float = 25, size: tuple[int, int] = (480, 480), *, scene: Scene | None = None,
    ) -> P:  # fmt: skip
        """Write a GIF of the robot as a stick figure; size in pixels. Needs the robot; returns the path.

        scene: an od.Scene whose shapes are drawn as lines; see od.animate.
        """
        from .animate import animate

        if self.robot is None:
            raise ModelError("trajectory", ["animate needs the robot; load the file with robot=..."])
        fps = number("animate: fps", fps, above=0)
        samples = self.sample(1.0 / fps)
        return animate(self.robot, samples.t, samples.q, path, fps, size, scene=scene)

    def report(
        self, path: StrPath, *, scene: Scene | None = None, frame: str | None = None, title: str | None = None,
    ) -> Path:  # fmt: skip
        """Write one HTML page, "plan.html": the table of limits, the robot that moves, figures; returns the path.

        It needs nothing but a browser, follows its light or dark setting, and can be printed. scene: an od.Scene, which
        is checked and drawn, too; default that of the plan, .scene, with the clearance that was asked for. Plans from
        files have none. frame: whose way is shown, default "tool" or the last link. Without the robot the
        page has no torques, no way and nothing that moves.
        """
        from .page import page

        return page(self, path, scene, frame, title)

    def _context(self) -> dict[str, Any]:
        return {
            "joints": self.joints,
            "units": self.units,
            "robot": self.robot,
            "limits": self.limits,
            "info": self.info,
            "friction": self.friction,
        }

    def __repr__(self) -> str:
        return f"<{self}>"


class Trajectory(Motion):
    """A planned motion: piecewise polynomials, evaluated exactly.

    t (M + 1,): breakpoints [s]. pieces (M, k, n): q and its derivatives at the start of each piece. The attributes of
    Samples are values at the breakpoints. limits: those it was planned with. info: objective, iterations, solver,
    status, seconds, rounds, and more. Raises ShapeError for shapes that do not fit and times that do not increase.
    """

    def __init__(
        self, t: Numbers, pieces: Numbers, *, joints: Sequence[str], units: Sequence[str],
        robot: Robot | None = None, limits: Limits | None = None, info: Mapping[str, Any] | None = None,
        torques: Sequence[Numbers] | None = None, friction: bool = True,
    ) -> None:  # fmt: skip
        self.pieces = _checked_pieces(t, read_only(pieces), joints)
        super().__init__(
            t,
            None,
            joints=joints,
            units=units,
            robot=robot,
            limits=limits,
            info=info,
            torques=torques,
            continuity=self.pieces.shape[1] - 2,
            friction=friction,
        )
        self.derivatives = self._at(self.t)
        self.solver_state = None  # for a warm start; not written to files

    def _at(self, times: Array) -> list[Array]:
        piece = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, len(self.pieces) - 1)
        count = max(ORDERS, self.pieces.shape[1])
        return list(derivatives_at(self.pieces[piece], times - self.t[piece], count))

    def both_sides(self, dt: float) -> Samples:
        """Samples every dt [s] and on both sides of each breakpoint, where derivatives may jump; times repeat."""
        before = derivatives_at(self.pieces, np.diff(self.t), max(ORDERS, self.pieces.shape[1]))
        grid = self.sample(dt)
        times = np.concatenate([grid.t, self.t[1:], self.t])
        order = np.argsort(times, kind="stable")
        derivatives = [
            np.concatenate([a, b, c])[order] for a, b, c in zip(grid.derivatives, before, self.derivatives, strict=True)
        ]
        return Samples(times[order], derivatives, **self._context(), continuity=self.continuity)

    def stretched(self, k: float) -> Trajectory:
        """The Trajectory k times slower: q(t / k) from the same first time on. Nothing is checked."""
        orders = np.arange(self.pieces.shape[1])
        info = {x: y for x, y in self.info.items() if x not in ("shares", "objective_value", "braking")}
        if isinstance(info.get("request"), dict):
            info["request"] = {
                end: [(np.asarray(x) / k**d).tolist() for d, x in enumerate(rows)]
                for end, rows in info["request"].items()
            }
        out = Trajectory(
            self.t[0] + k * (self.t - self.t[0]), self.pieces / (k**orders)[:, None], joints=self.joints,
            units=self.units, robot=self.robot, limits=self.limits, info={**info, "scaled_by": k},
            friction=self.friction,
        )  # fmt: skip
        out.scene = self.scene
        return out

    def scaled_in_time(
        self, duration: float | None = None, *, limits: Limits | None = None, check: str = "warn",
    ) -> Trajectory:  # fmt: skip
        """The same way in another time: q(t / k), uniformly slower or faster, from rest to rest.

        duration [s]: what it takes then; by default the shortest that keeps all limits, which may be less than today's.
        limits: default those of the plan. They are kept exactly where they are of derivatives; torques, of which
        gravity keeps its part however slow the motion, to 1e-8 of the limit where `check` looks.
        check: what to do about limits that a given duration exceeds by more than 0.1 %: "warn", "raise", or "off".
        info["scaled_by"] tells k. Raises LimitError for a motion that does not start and end at rest, for a limit that
        gravity alone exceeds, for positions outside their limits, and where no limit bounds the time; ShapeError
        without limits and without a duration.
        """
        checked_mode(check)
        check_rest(self)
        limits = self.limits if limits is None else limits
        if duration is None:
            k = shortest_scale(self, limits)
        else:
            k = number("scaled_in_time: duration", duration, above=0) / self.duration
        out = self.stretched(k)
        if limits is not self.limits:
            out.limits = limits
        if duration is not None and limits is not None and check != "off":
            report_or_raise("scaled_in_time", out.check(), check, "give a longer duration, or none", out)
        return out

    def jumps(self) -> dict[str, float]:
        """{quantity: largest jump at the breakpoints} of q and the derivatives that should be continuous."""
        smooth = self.continuity + 1
        after = derivatives_at(self.pieces, np.diff(self.t), smooth)
        return {
            order_name(k): float(np.abs(after[k][:-1] - self.pieces[1:, k]).max(initial=0.0)) for k in range(smooth)
        }

    def on_pieces(self, piece: Indices, s: Array) -> Samples:
        """Samples at times s (K,) after the start of pieces (K,): at its end a piece is as it is before a jump."""
        derivatives = list(derivatives_at(self.pieces[piece], s, max(ORDERS, self.pieces.shape[1])))
        return Samples(self.t[piece] + s, derivatives, **self._context(), continuity=self.continuity)

    @classmethod
    def load(cls, path: StrPath, robot: Robot | None = None) -> Trajectory | Samples:
        """The Trajectory in a .csv, .npz or .json file, exactly as it was saved; Samples if saved with dt.

        robot: needed for torques between the breakpoints, and for animate. Raises FileError naming file and line.
        """
        what, facts = storage.load(path, robot)
        if what == "pieces":
            return cls(**facts)
        return Samples(**facts)

    def __str__(self) -> str:
        n, N = len(self.joints), len(self.pieces)
        name = terminal(self.robot_name or "a robot")
        return (
            f"Trajectory of {name}: {n} joints, {self.duration:.6g} s, {N} pieces of degree "
            f"{self.pieces.shape[1] - 1}, {self.continuity} times continuously differentiable"
        )


def _checked_pieces(t: Numbers, pieces: Array, joints: Sequence[str]) -> Array:
    """The pieces, if t and joints fit to them."""
    t, n = np.asarray(t, float), len(tuple(joints))
    if pieces.ndim != 3 or not len(pieces) or pieces.shape[1] < 2 or pieces.shape[2] != n:
        expected = f"(pieces, derivatives from q on, {n}), at least one piece with q and v"
        raise ShapeError(f"trajectory: pieces has shape {pieces.shape}, expected {expected}")
    if t.shape != (len(pieces) + 1,):
        raise ShapeError(f"trajectory: t has shape {t.shape}, expected ({len(pieces) + 1},) for {len(pieces)} pieces")
    if not np.all(np.diff(t) > 0):
        k = int(np.argmin(np.diff(t) > 0))
        raise ShapeError(f"trajectory: its times do not increase: {t[k]:g} s, then {t[k + 1]:g} s, at piece {k}")
    return pieces


def _beyond(jumps: Array, largest: Array, times: Array) -> tuple[Array, np.ndarray[Any, np.dtype[np.bool_]]]:
    """(time (n,), whether (n,)) of jumps (K, n) that are more than what rounding and solvers leave of zero."""
    k = np.argmax(np.abs(jumps), axis=0)
    size = np.abs(jumps).max(axis=0)
    return times[k], size > np.maximum(_JUMP * largest, 1e-3 * _JUMP * largest.max(initial=0.0))


def joint_units(robot: Robot) -> tuple[str, ...]:
    """Unit of each coordinate: rad or m."""
    return tuple(unit for j in robot.joints for unit in UNITS.get(j.kind, ("rad",) * j.nv))


def of_solution(
    solution: Solution, chain: Sequence[Any], robot: Robot | None = None, limits: Limits | None = None,
    friction: bool = True,
) -> Trajectory:  # fmt: skip
    """Trajectory of a Solution; see Solution.trajectory."""
    count = len(solution.t) - 1
    pieces = np.stack([solution[x][:count] for x in chain], axis=1)
    n = pieces.shape[2]
    if robot is not None and (n != robot.nv or robot.nq != robot.nv):
        raise ShapeError(f"trajectory: {n} coordinates for {robot.name}, which has {robot.nq}")
    info = {"solver_status": solution.status, "iterations": solution.iterations}
    names = [str(i + 1) for i in range(n)] if robot is None else robot.coordinate_names
    units = ("",) * n if robot is None else joint_units(robot)
    facts: dict[str, Any] = {"joints": names, "units": units, "robot": robot, "limits": limits, "info": info}
    return Trajectory(solution.t - solution.t[0], pieces, friction=friction, **facts)


Solution.to_trajectory = staticmethod(of_solution)
