"""What springs and motors do along motions of the links, in numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from ..errors import ShapeError
from ..function import function
from ..planning.trajectory import Trajectory
from ..types import Array, Numbers
from .damped_along import DampedDeflections
from .damped_flat import damped_flat_map, wanted_continuity
from .drives import at_drives
from .effects import refuse_effects
from .electrical import MotorElectrics
from .model import ElasticRobot
from .motor_side import at_motors

Jets = Callable[[Array], list[Array]]

# limits of motors and springs, and the outputs that they are of
OUTPUTS = {
    "motor_torque": "tau_m",
    "motor_torque_rate": "dtau_m",
    "motor_speed": "dtheta",
    "deflection": "deflection",
    "current": "current",
    "voltage": "voltage",
    "torque_speed": "torque_speed",
}


def known_order(elastic: ElasticRobot, motion: Trajectory) -> int:
    """1 if the motor torque's rate is bounded along a Trajectory of the links, else 0."""
    return int(motion.continuity >= wanted_continuity(elastic, "torque_rate") - 1)


def jets_of(sigma: Array | Trajectory | None, order: int) -> Jets | None:
    """Function t (K,) -> [sigma, dsigma, ...] (K, n) to derivative 2 + order of stiffnesses that are held, or of a
    Trajectory; None where there are none."""
    if sigma is None:
        return None
    if isinstance(sigma, Trajectory):
        return lambda t: list(sigma.sample(np.asarray(t, float)).derivatives[: 3 + order])
    return lambda t: [np.tile(sigma, (len(t), 1))] + [np.zeros((len(t), sigma.size))] * (2 + order)


def deflections_along(
    elastic: ElasticRobot, motion: Trajectory, sigma: Jets | None = None, periodic: bool = False,
) -> DampedDeflections | None:  # fmt: skip
    """DampedDeflections along a Trajectory of the links, None for robots without dampers."""
    return DampedDeflections(elastic, motion, sigma, periodic) if elastic.damped else None


def outputs_along(
    elastic: ElasticRobot, motion: Trajectory, t: Numbers, sigma: Sequence[Array] | Trajectory | None = None,
) -> dict[str, Array]:  # fmt: skip
    """Outputs of the flat map along a Trajectory of the links at times t (K,), from rest where springs are damped.

    sigma: [sigma, dsigma, ...] (K, n) at these times, or a Trajectory, which springs with dampers need.
    """
    refuse_effects("outputs_along", elastic)
    times, order = np.asarray(t, float), known_order(elastic, motion)
    derivatives = motion.sample(times).derivatives
    whole = jets_of(sigma, order) if isinstance(sigma, Trajectory) else None
    jets = whole(times) if whole else None if isinstance(sigma, Trajectory) else sigma
    if elastic.damped and jets is not None and whole is None:
        raise ShapeError(
            f"outputs_along {elastic.name}: its springs are damped, so that what they do depends on all of sigma "
            "before; give it as a Trajectory"
        )
    z = deflections_along(elastic, motion, whole)
    return flat_outputs(elastic, derivatives, order, jets, None if z is None else z.at(times))


def flat_outputs(
    elastic: ElasticRobot, derivatives: Sequence[Array], order: int = 0, sigma: Sequence[Array] | None = None,
    z: Sequence[Array] | None = None, electrical: MotorElectrics | None = None,
) -> dict[str, Array]:  # fmt: skip
    """{"q", "v", ..., "theta", "dtheta", "tau_m", "deflection": (K, n)}, with "dtau_m" at order 1, by the flat map.

    derivatives: [q, v, ...] (K, n), zero where they end. sigma: [sigma, dsigma, ...] (K, n) of robots that vary their
    stiffness. z: [z, z', ...] (K, damped springs); without them springs are taken as if they had no dampers, which is
    right for a robot at rest. electrical: for "current", "voltage", "torque_speed" besides.
    """
    if elastic.damped and z is not None:
        flat = damped_flat_map(elastic, order)
    else:
        flat = function(elastic.undamped(), "elastic_flat_map", order=order)
    own = [n for n in flat.name_in() if n.endswith("z")]
    held = [n for n in flat.name_in() if "sigma" in n]
    names = [n for n in flat.name_in() if n not in own and n not in held]
    zeros = np.zeros_like(derivatives[0])
    given = {n: (derivatives[k] if k < len(derivatives) else zeros).T for k, n in enumerate(names)}
    jets = list(sigma or [])
    jets += [np.zeros_like(jets[0])] * (len(held) - len(jets)) if jets else []
    given |= {n: x.T for n, x in zip(held, jets, strict=False)}
    given |= {n: x.T for n, x in zip(own, z or [], strict=False)}
    found = flat(**given)
    out = dict(zip(names, derivatives, strict=False))
    speeds = out.get("v", zeros)
    taken = ("theta", "dtheta", "d2theta", "d3theta", "tau_m", "dtau_m", "tau_sigma")
    out |= {n: np.array(found[n]).T for n in taken if n in found}
    position = np.array(at_drives(elastic, [ca.DM(out["q"].T)])[0]).T
    out["deflection"] = out["theta"] - position[:, deflected(elastic)]
    if electrical is not None:
        values = electrical.outputs(elastic, out["tau_m"].T, motor_speeds(elastic, {**out, "v": speeds}))
        out |= {n: np.array(ca.DM(x)).T for n, x in values.items()}
    return out


def motor_speeds(elastic: ElasticRobot, outputs: dict[str, Array]) -> Array:
    """(tau_m, K) joint-side speeds of all motors, those of rigid joints included, of outputs of the flat map."""
    drives = ca.DM(at_drives(elastic, [ca.DM(outputs["q"].T), ca.DM(outputs["v"].T)])[1])
    rows: Any = at_motors(elastic, ca.vertsplit(drives), ca.DM(outputs["dtheta"].T))
    return np.array(rows)


def deflected(elastic: ElasticRobot) -> list[int]:
    """Rows of q that the rows of theta belong to."""
    return [j.q for j in elastic.joints for _ in j.theta]
