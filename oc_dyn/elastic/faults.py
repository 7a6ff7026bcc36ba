"""Wrong samples of a sampled loop, and what a law does about them: limits of what is measured, safe torques."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .. import validation
from ..errors import ShapeError
from ..numbers import shortened
from ..types import Array
from .closed_loop import ClosedLoop
from .measured_limits import Watch, measured_limits, safe_torques
from .torque_sensors import TORQUES

_PORTS = ("q", "v", "theta", "dtheta", "sigma", "dsigma")


class Faults:
    """wrong: {sample: {port: offset}}; watch: of what is measured, None for none; safe: (motors,), None: the last."""

    def __init__(self, loop: ClosedLoop, wrong: dict[int, dict[str, Array]], watch: Watch | None, safe: Any) -> None:
        self.loop, self.wrong, self.watch, self._safe = loop, wrong, watch, safe

    @property
    def facts(self) -> dict[str, Any]:
        """For the facts of a Run."""
        return {"refused_samples": self.watch.refused} if self.watch else {}

    def of_state(self, sample: int, seen: Array) -> Array:
        """What is seen of the robot's state (size,), with this sample's errors."""
        if sample not in self.wrong:
            return seen
        seen = np.array(seen, float)
        for n, x in self.wrong[sample].items():
            if n in self.loop.plant.parts:
                seen[self.loop.plant.parts[n]] += x
        return seen

    def of_torques(self, sample: int, read: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        """(measured state, tau, dtau) with this sample's errors of the last two."""
        wrong = self.wrong.get(sample, {})
        tau, dtau = (x + wrong[n] if n in wrong else x for n, x in zip(TORQUES, read[1:], strict=True))
        return read[0], tau, dtau

    def accept(self, read: tuple[Any, Any, Any]) -> bool:
        """Whether the law is to run with what is measured."""
        if self.watch is None:
            return True
        state, *torques = (np.asarray(x, float).ravel() for x in read)
        known = {n: state[part] for n, part in self.loop.plant.parts.items()} | dict(zip(TORQUES, torques, strict=True))
        return self.watch.accepts(np.concatenate([np.zeros(0), *(known[n] for n, _ in self.watch.limits.ports)]))

    def safe(self, last: Array) -> Array:
        """(controls,) that act where it is not to run; last: those of the sample before."""
        controls = self.loop.plant.controls
        if self._safe is None:
            return last[:controls]
        return np.concatenate([self._safe, np.zeros(controls - len(self._safe))])


def faults_of(loop: ClosedLoop, limits: Any, safe_torque: Any, wrong_samples: Any) -> Faults:
    """Faults from the arguments of simulate."""
    h = loop.sample_time
    for name, given in (("measured_limits", limits), ("wrong_samples", wrong_samples)):
        if given is not None and h is None:
            raise ShapeError(f"simulate: {name} is for sampled laws; give sample_time")
    last = isinstance(safe_torque, str) and safe_torque == "last"
    safe = None if last else safe_torques("simulate", loop.controller, safe_torque, loop.limit)
    found = measured_limits("simulate", loop.controller, limits, h or 1.0, loop.limit)
    return Faults(loop, _wrong(loop, wrong_samples), None if found is None else Watch(found), safe)


def _wrong(loop: ClosedLoop, given: Any) -> dict[int, dict[str, Array]]:
    if given is None:
        return {}
    sizes = {n: loop.plant.parts[n].stop - loop.plant.parts[n].start for n in _PORTS if n in loop.plant.parts}
    sizes |= dict.fromkeys(TORQUES, len(loop.elastic.joints))
    if not isinstance(given, Mapping):
        raise ShapeError(f"simulate: wrong_samples is {shortened(given)}, expected {{sample: {{port: offset}}}}")
    out: dict[int, dict[str, Array]] = {}
    for k, errors in given.items():
        k = validation.count("simulate: number of a wrong sample", k)
        out[k] = {}
        for n, x in validation.options_of(f"simulate: wrong sample {k}", errors).items():
            validation.one_of(f"measured port of wrong sample {k}", n, sizes)
            out[k][n] = validation.finite_numbers(f"simulate: wrong sample {k}, {n}", x, sizes[n])
    return out
