"""A step of a controller in Python, as <name>_step does it in C; see closed_loop_codegen.py."""

from __future__ import annotations

from collections.abc import Mapping
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


def step_made(controller: Any, given: list[Array], sound: bool) -> dict[str, Any]:
    """{output: value, "status", ...} of a step, and the memory of the controller behind it."""
    memory, status = np.array(controller.memory, float), Status.OK
    if memory.shape != controller.start.shape or not np.all(np.abs(memory) < np.inf):
        memory, status = controller.start, Status.FALLBACK
    elif not sound:
        status = Status.BAD_MEASUREMENT
    outputs, n = list(controller.outputs), len(controller.outputs)
    objective, violation, iterations = 0.0, 0.0, 0
    kept = [np.zeros(controller.outputs[k]) for k in outputs]
    following = controller.start
    if status == Status.OK:
        found = _called(controller.function, memory, given)
        status = Status(int(found[n + 3][0])) if found else Status.FALLBACK
        if found:
            objective, violation, iterations = found[n + 1][0], found[n + 2][0], int(found[n + 4][0])
            kept, following = found[:n], found[n]
    if status in (Status.BAD_MEASUREMENT, Status.FALLBACK):
        found = _called(controller.fallback, memory, given if sound else _known(controller, memory))
        kept = found[:n] if found else [np.zeros(controller.outputs[k]) for k in outputs]
        following = found[n] if found else controller.start
    controller.memory = following
    out: dict[str, Any] = {k: np.clip(x, *controller.bounds[k]) for k, x in zip(outputs, kept, strict=True)}
    numbers = {"objective": float(objective), "violation": float(violation), "iterations": iterations}
    return out | numbers | {"status": status}


def _called(function: Any, memory: Array, given: list[Array]) -> list[Array] | None:
    """Outputs, or None where it fails, or one is not finite."""
    try:
        found = [np.array(x).ravel() for x in function(memory, *given)]
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
