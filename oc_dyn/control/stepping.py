"""A step of a controller in Python, as <name>_step does it in C; see closed_loop_codegen.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..types import Array
from .status import Status

LARGEST = 1e12  # what is measured beyond it is no measurement


def measured_numbers(parameters: Any) -> tuple[Any, bool]:
    """(parameters with zeros for numbers that are none, whether there were no such)."""
    if not isinstance(parameters, Mapping):
        return parameters, True
    out, sound = dict(parameters), True
    for key, value in parameters.items():
        try:
            numbers = np.array(value, float)
        except (TypeError, ValueError):
            continue  # is refused with its name
        wrong = ~(np.abs(numbers) <= LARGEST)
        if wrong.any():
            out[key], sound = np.where(wrong, 0.0, numbers), False
    return out, sound


@dataclass(eq=False)
class Prepared:
    """What prepare leaves for react. numbers: None where it could not be made. given: all parameters."""

    numbers: Array | None
    memory: Array
    given: list[Array]
    status: Status
    seconds: float = 0.0


def step_made(controller: Any, given: list[Array], sound: bool) -> dict[str, Any]:
    """{output: value, "status", ...} of a step, and the memory of the controller behind it."""
    memory, status = _sound_memory(controller, sound)
    found = _called(controller.function, memory, given) if status == Status.OK else None
    return _ended(controller, memory, given, sound, status, found)


def prepared_made(controller: Any, given: list[Array], sound: bool) -> Prepared:
    """Prepared, from the memory of the controller."""
    memory, status = _sound_memory(controller, sound)
    found = _called(controller.preparation, memory, given) if status == Status.OK else None
    return Prepared(found[0] if found else None, memory, given, status)


def reaction_made(controller: Any, prepared: Prepared, measured: list[Array], sound: bool) -> dict[str, Any]:
    """As step_made, by the second half of a step."""
    status, given = prepared.status, list(prepared.given)
    if not sound and status == Status.OK:
        status = Status.BAD_MEASUREMENT
    for k, value in zip(controller.measured, measured, strict=True):
        given[list(controller.names).index(k)] = value
    found = None
    if status == Status.OK and prepared.numbers is not None:
        found = _called(controller.feedback, prepared.numbers, measured)
    sound = sound and prepared.status != Status.BAD_MEASUREMENT
    return _ended(controller, prepared.memory, given, sound, status, found)


def _sound_memory(controller: Any, sound: bool) -> tuple[Array, Status]:
    """(memory to start from, status so far)."""
    memory = np.array(controller.memory, float)
    if memory.shape != controller.start.shape or not np.all(np.abs(memory) < np.inf):
        return controller.start, Status.FALLBACK
    return memory, Status.OK if sound else Status.BAD_MEASUREMENT


def _ended(
    controller: Any, memory: Array, given: list[Array], sound: bool, status: Status, found: list[Array] | None
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
        found = _called(controller.fallback, memory, given if sound else _known(controller, memory))
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
    """The parameters of the last good step, which the memory holds."""
    f = controller.function
    sizes = [f.numel_in(k) for k in range(1, f.n_in())]
    at, out = memory.size - 1 - sum(sizes), []
    for k, size in enumerate(sizes, 1):
        out.append(memory[at : at + size].reshape(f.size_in(k), order="F"))
        at += size
    return out
