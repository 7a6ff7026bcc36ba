"""A step of a controller in Python, as <name>_step does it in C; see closed_loop_codegen.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..types import Array
from .status import Status

LARGEST = 1e12  # what is measured beyond it is no measurement


def measured_numbers(parameters: Any) -> tuple[Any, dict[Any, Any]]:
    """(parameters with zeros for numbers that are none, {key: 1 for each number of it that is none, else 0} of those
    that have such)."""
    if not isinstance(parameters, Mapping):
        return parameters, {}
    out, bad = dict(parameters), {}
    for key, value in parameters.items():
        try:
            numbers = np.array(value, float)
        except (TypeError, ValueError):
            continue  # is refused with its name
        wrong = ~(np.abs(numbers) <= LARGEST)
        if wrong.any():
            out[key], bad[key] = np.where(wrong, 0.0, numbers), wrong.astype(float)
    return out, bad


@dataclass(frozen=True, eq=False)
class Given:
    """Values of parameters. wrong: of each, which of its numbers are none; None where all are good."""

    values: list[Array]
    wrong: list[Any] | None = None

    def filled(self, controller: Any, names: Sequence[str], memory: Array) -> list[Array]:
        """The values of the parameters of these names, each number that is none replaced by the last good one."""
        if self.wrong is None:
            return self.values
        known = dict(zip(controller.names, _known(controller, memory), strict=True))
        return [np.where(w, known[k], x) for k, x, w in zip(names, self.values, self.wrong, strict=True)]


@dataclass(eq=False)
class Prepared:
    """What prepare leaves for react. numbers: None where it could not be made. given: all parameters, filled."""

    numbers: Array | None
    memory: Array
    given: list[Array]
    status: Status
    seconds: float = 0.0


def step_made(controller: Any, given: Given) -> dict[str, Any]:
    """{output: value, "status", ...} of a step, and the memory of the controller behind it."""
    memory, status = _sound_memory(controller, given.wrong is None)
    values = given.filled(controller, controller.names, memory)
    found = _called(controller.function, memory, values) if status == Status.OK else None
    return _ended(controller, memory, values, status, found)


def prepared_made(controller: Any, given: Given) -> Prepared:
    """Prepared, from the memory of the controller."""
    memory, status = _sound_memory(controller, given.wrong is None)
    values = given.filled(controller, controller.names, memory)
    found = _called(controller.preparation, memory, values) if status == Status.OK else None
    return Prepared(found[0] if found else None, memory, values, status)


def reaction_made(controller: Any, prepared: Prepared, measured: Given) -> dict[str, Any]:
    """As step_made, by the second half of a step."""
    status, values = prepared.status, dict(zip(controller.names, prepared.given, strict=True))
    if measured.wrong is not None and status == Status.OK:
        status = Status.BAD_MEASUREMENT
    seen = measured.filled(controller, controller.measured, prepared.memory)
    values.update(zip(controller.measured, seen, strict=True))
    found = None
    if status == Status.OK and prepared.numbers is not None:
        found = _called(controller.feedback, prepared.numbers, seen)
    return _ended(controller, prepared.memory, list(values.values()), status, found)


def _sound_memory(controller: Any, sound: bool) -> tuple[Array, Status]:
    """(memory to start from, status so far)."""
    memory = np.array(controller.memory, float)
    if memory.shape != controller.start.shape or not np.all(np.abs(memory) < np.inf):
        return controller.start, Status.FALLBACK
    return memory, Status.OK if sound else Status.BAD_MEASUREMENT


def _ended(
    controller: Any, memory: Array, given: list[Array], status: Status, found: list[Array] | None
) -> dict[str, Any]:
    """What a step returns. found: outputs of function, None where it was not called or failed."""
    outputs, n = list(controller.outputs), len(controller.outputs)
    objective, violation, iterations = 0.0, 0.0, 0
    kept = [np.zeros(controller.outputs[k]) for k in outputs]
    following = controller.start
    if status == Status.OK:
        status = Status(int(found[n + 3][0])) if found else Status.FALLBACK
        if found:
            objective, violation, iterations = found[n + 1][0], found[n + 2][0], int(found[n + 4][0])
            kept, following = found[:n], found[n]
    if status in (Status.BAD_MEASUREMENT, Status.FALLBACK):
        found = _called(controller.fallback, memory, given)
        kept = found[:n] if found else [np.zeros(controller.outputs[k]) for k in outputs]
        following = found[n] if found else controller.start
    out: dict[str, Any] = {k: np.clip(x, *controller.bounds[k]) for k, x in zip(outputs, kept, strict=True)}
    controller.memory = _with_sent(controller, following, out)
    numbers = {"objective": float(objective), "violation": float(violation), "iterations": iterations}
    return out | numbers | {"status": status}


def _with_sent(controller: Any, memory: Array, out: dict[str, Any]) -> Array:
    """Memory in which the newest controls in flight are the outputs."""
    if not controller.functions.sent:
        return memory
    places, numbers = map(list, zip(*controller.functions.sent, strict=True))
    memory = memory.copy()
    memory[places] = np.concatenate(list(out.values()))[numbers] / controller.made.u_scale
    return memory


def _called(function: Any, memory: Array, given: list[Array]) -> list[Array] | None:
    """Outputs, or None where it fails, or one is not finite."""
    try:
        found = [np.array(x).ravel() for x in function.call([memory, *given])]
    except RuntimeError:
        return None
    return found if all(np.all(np.isfinite(x)) for x in found) else None


def _known(controller: Any, memory: Array) -> list[Array]:
    """The parameters that were good last, which the memory holds, as controller.values gives them."""
    f = controller.function
    sizes = [f.numel_in(k) for k in range(1, f.n_in())]
    at, out = memory.size - 1 - sum(sizes), []
    for k, size in enumerate(sizes, 1):
        value = memory[at : at + size]
        out.append(value if f.size2_in(k) == 1 else value.reshape(f.size_in(k), order="F"))
        at += size
    return out
