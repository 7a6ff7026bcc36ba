"""Result of a simulation of an elastic robot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from ..types import Array
from .closed_loop import ClosedLoop
from .plant import ENERGIES


@dataclass(frozen=True, eq=False)
class Run:
    """Result of a simulation, rows are times.

    t (K,) [s]; q, v (K, n) of the links, theta, dtheta of the motors of elastic joints; sigma; q_ref, v_ref; tau_m
    motor torques that act, saturated (with a delay, those commanded before); deflection theta - q and tau, the torques
    of the springs; energies {kinetic_links, kinetic_motors, springs, gravity: (K,)} [J]; put_in, taken (K,): work of
    motors and drives, and that of friction and dampers, since the start [J]; facts: method, tolerance, steps and more;
    states (K, size) whole.
    """

    t: Array
    q: Array
    v: Array
    theta: Array
    dtheta: Array
    q_ref: Array
    v_ref: Array
    tau_m: Array
    deflection: Array
    tau: Array
    energies: dict[str, Array]
    put_in: Array
    taken: Array
    states: Array
    sigma: Array | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def error(self) -> Array:
        """(K, n) q - q_ref."""
        return self.q - self.q_ref

    @property
    def largest_error(self) -> float:
        """Largest absolute error of any joint at any time [rad, m]."""
        return float(np.abs(self.error).max())

    @property
    def energy(self) -> Array:
        """(K,) total energy [J]."""
        return cast(Array, sum(self.energies.values()))

    @property
    def energy_balance(self) -> Array:
        """(K,) energy gained less work put in plus work taken [J]: zero but for errors of integration."""
        return self.energy - self.energy[0] - self.put_in + self.taken


def run_of(loop: ClosedLoop, times: Array, states: Array, controls: Array | None, facts: dict[str, Any]) -> Run:
    """Run of states (size, times) of a closed loop; controls (controls, times): what acted, None to ask the law."""
    p, e = loop.plant, loop.elastic
    robot = states[: p.size]
    parts = {name: robot[part].T for name, part in p.parts.items()}
    ref = loop.reference.at(times)
    sigma = np.vstack([ref["sigma"], ref["dsigma"]]) if e.sigma_names else np.zeros((0, times.size))
    if controls is None:
        law = loop.law().map(times.size)
        controls = law(times.reshape(1, -1), robot, states[p.size : p.size + loop.memory]).full()[: p.controls]
    energies = p.energies.map(times.size)(robot, sigma).full()
    deflection, tau = (x.full().T for x in p.springs.map(times.size)(robot, sigma))
    return Run(
        t=times,
        q=parts["q"],
        v=parts["v"],
        theta=parts["theta"],
        dtheta=parts["dtheta"],
        q_ref=ref["q"].T,
        v_ref=ref["v"].T,
        tau_m=controls[: len(e.motor_names)].T,
        deflection=deflection,
        tau=tau,
        energies=dict(zip(ENERGIES, energies, strict=True)),
        put_in=states[-2],
        taken=states[-1],
        states=robot.T,
        sigma=parts.get("sigma", ref["sigma"].T if e.sigma_names else None),
        facts=facts,
    )
