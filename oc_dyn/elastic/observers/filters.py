"""Velocities from positions alone: low-pass filters of their derivative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from ... import validation
from ...errors import ShapeError, UnknownName
from ...types import Numbers
from ..linear_errors import pole_gains
from ..model import ElasticRobot
from .observer import Observer, admitted, observer

SPEEDS = {"q": "v", "theta": "dtheta", "sigma": "dsigma"}


def velocity_filter(
    elastic: ElasticRobot, poles: Numbers, *, order: int = 1, of: str | Sequence[str] = ("q", "theta"),
) -> Observer:  # fmt: skip
    """Velocities v_hat, dtheta_hat of the positions q, theta (and sigma) named in `of`, by filters of order 1 or 2.

    poles [1/s]: of the filter: a positive number g, all at -g, or as many poles as the order, complex ones in pairs.
    order: 1 is g s / (s + g), the difference of what is read through a low-pass; 2 is k0 s / (s^2 + k1 s + k0), which
        forgets noise of the sensors one order faster.
    Promise: the error decays with the poles where velocities are constant; a constant acceleration a leaves a / g
    (order 1), a k1 / k0 (order 2; 2 a / g with both poles at -g). Source: any text on filters, e.g. the "dirty
    derivative" of Ortega et al. 1998, section 2.3. Raises ShapeError, UnknownName.
    """
    admitted("velocity_filter", elastic, one_motor=False)
    names = validation.names_of("velocity_filter: of", of)
    known = [n for n in SPEEDS if n != "sigma" or elastic.stiffness_driven]
    for n in names:
        if n not in known:
            raise UnknownName("position that can be filtered", n, known)
    if not names:
        raise ShapeError(f"velocity_filter: of is empty; expected some of {', '.join(known)}")
    k = pole_gains(poles, validation.count("velocity_filter: order", order, 1, 2), 1, "velocity_filter: poles")[0]

    def law(measured: dict[str, Any], memory: Any) -> dict[str, Any]:
        y = ca.vertcat(*measured.values())
        e = y - memory[: y.numel()]
        if order == 1:
            speed, rate = k[0] * e, k[0] * e
        else:
            speed = memory[y.numel() :]
            rate = ca.vertcat(speed + k[1] * e, k[0] * e)
        parts, start = {}, 0
        for n, x in measured.items():
            parts[f"{SPEEDS[n]}_hat"] = speed[start : start + x.numel()]
            start += x.numel()
        return {**parts, "memory_rate": rate}

    def first(measured: dict[str, Any]) -> Any:
        y = ca.vertcat(*measured.values())
        return ca.vertcat(y, ca.DM.zeros((order - 1) * y.numel()))

    rows = {"q": elastic.nq, "theta": len(elastic.elastic_motors), "sigma": len(elastic.sigma_names)}
    return observer("velocity_filter", elastic, names, law, order * sum(rows[n] for n in names), first, k)
