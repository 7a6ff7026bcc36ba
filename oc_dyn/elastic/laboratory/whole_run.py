"""A sampled simulation as one casadi.Function of what differs from seed to seed: the numbers of simulate, faster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ...codegen.compiled import compile as compiled_functions
from ...errors import ShapeError
from ...types import Array
from ..closed_loop import ClosedLoop
from ..dop853 import fixed_step
from ..sensor_effects import SensorEffects
from ..sensors import Sensors

FLAGS = ("-O1", "-ffp-contract=off")
_FAR = 1e6  # beyond which a motion has diverged


@dataclass(frozen=True, eq=False)
class WholeRun:
    """Runs of a closed loop under effects, `samples` sample times long, by seed."""

    loop: ClosedLoop
    effects: SensorEffects
    sample_time: float
    samples: int
    functions: tuple[ca.Function, ca.Function, ca.Function]  # law, step of the robot, all samples
    substeps: int = 1

    def states(self, x0: Array, seed: int = 0) -> Array:
        """(size of the robot, samples + 1) states from x0, the whole first state of the loop; NaN where it diverges."""
        return self.motion(x0, seed)[0]

    def motion(self, x0: Array, seed: int = 0) -> tuple[Array, Array]:
        """states, and (controls, samples) what acted from each sample on."""
        loop, size = self.loop, self.loop.plant.size
        sensors = Sensors(loop, self.effects, self.sample_time, seed)
        noise = sensors.noise(self.samples + 1)[:, : self.samples]
        robot, memory = x0[:size], x0[size : size + loop.memory]
        measured = sensors.first(0.0, robot, robot, noise[:, 0])
        *seen, _ = sensors.function(0.0, robot, robot, measured, sensors.zeros, noise[:, 0])
        law, _, run = self.functions
        first = law(0.0, *seen, memory).full().ravel()[: loop.plant.controls]
        whole = np.concatenate([robot, memory, measured, *[first] * self.effects.delay])
        times = self.sample_time * np.arange(self.samples).reshape(1, -1)
        found = run(whole, times, noise, np.tile(sensors.zeros[:, None], self.samples)).full()
        return np.column_stack([robot, found[:size]]), found[size:]

    def miss(self, states: Array, acting: Array) -> float:
        """Share of their size by which half as long steps would change the states in all, as told by ten of them."""
        finer, misses = _step(self.loop, 2 * self.substeps), []
        _, step, _ = self.functions
        for k in np.linspace(0, self.samples - 1, 10).astype(int):
            given = (k * self.sample_time, states[:, k], self.sample_time, acting[:, k])
            one, two = (f(*given).full().ravel() for f in (step, finer))
            if np.all(np.isfinite(one)) and np.abs(one).max() < _FAR:
                misses.append(np.abs(two - one).max() / max(np.abs(one).max(), 1e-9))
        return float(np.mean(misses) * self.samples) if misses else 0.0


def whole_run(
    loop: ClosedLoop, effects: SensorEffects, sample_time: float, samples: int, substeps: int = 1,
    compiled: bool = True,
) -> WholeRun:  # fmt: skip
    """WholeRun of a ClosedLoop. compiled: law and robot, where there is a compiler; else CasADi evaluates them."""
    if loop.sample_time is None:
        raise ShapeError("whole_run: the ClosedLoop has no sample_time")
    law, step = loop.measured_law(), _step(loop, substeps)
    if compiled:
        law, step = compiled_functions([law, step], flags=FLAGS, fallback=True)
    sensors = Sensors(loop, effects, sample_time).function
    size, c = loop.plant.size, loop.plant.controls
    sizes = [size, loop.memory, sensors.size1_in(3), c * effects.delay]
    x, t = ca.MX.sym("x", sum(sizes)), ca.MX.sym("t")
    noise, zeros = ca.MX.sym("noise", sensors.size1_in(5)), ca.MX.sym("zeros", sensors.size1_in(4))
    robot, memory, measured, waiting = ca.vertsplit(x, np.cumsum([0, *sizes]).tolist())
    *seen, measured = sensors(t, robot, robot, measured, zeros, noise)
    u, rate = ca.vertsplit(law(t, *seen, memory), [0, c, c + loop.memory])
    acting, waiting = ca.vertsplit(ca.vertcat(waiting, u), [0, c, c * (effects.delay + 1)])
    after = step(t, robot, sample_time, acting)
    memory = _held_back(loop, memory + sample_time * rate)
    whole = ca.vertcat(after, memory, measured, waiting)
    sample = ca.Function("sample", [x, t, noise, zeros], [whole, ca.vertcat(after, acting)])
    run = sample.mapaccum(samples)
    given = [ca.MX.sym("x", sum(sizes)), *(ca.MX.sym(f"i{k}", *run.size_in(k)) for k in range(1, 4))]
    run = ca.Function("run", given, [run(*given)[1]])
    return WholeRun(loop, effects, sample_time, samples, (law, step, run), substeps)


def _step(loop: ClosedLoop, substeps: int) -> ca.Function:
    """casadi.Function (t, x, h, u) -> state of the robot after h under held u; the same text for all laws where the
    stiffness is not prescribed."""
    t, x = ca.MX.sym("t"), ca.MX.sym("x", loop.plant.size)
    u = ca.MX.sym("u", loop.plant.controls)
    dx = loop.plant.rates(x, u, loop.sigma(loop.reference_at(t)) if loop.elastic.sigma_names else ca.DM(0, 1))
    return fixed_step(ca.Function("rates", [t, x, u], [dx]), substeps)


def _held_back(loop: ClosedLoop, memory: Any) -> Any:
    """As anti_windup.held_back, of an expression."""
    if loop.limit is None:
        return memory
    for k, rate, motor in loop.controller.integrators:
        most, x, dx = loop.limit[motor], memory[k], memory[rate]
        memory = ca.MX(memory)
        memory[rate] = ca.if_else(x >= most, ca.fmin(dx, 0), ca.if_else(x <= -most, ca.fmax(dx, 0), dx))
        memory[k] = ca.if_else(x >= most, most, ca.if_else(x <= -most, -most, x))
    return memory
