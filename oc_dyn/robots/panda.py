"""The Panda (FER) of Franka Emika: seven revolute joints on a fixed base, without hand."""

import numpy as np

from ..model.builder import RobotBuilder

_RIGHT = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])  # a quarter turn about x, exactly
_LEFT = _RIGHT.T

# resting pose of each joint in the link before it: rotation, xyz [m]
GEOMETRY = (
    (np.eye(3), (0.0, 0.0, 0.333)),
    (_LEFT, (0.0, 0.0, 0.0)),
    (_RIGHT, (0.0, -0.316, 0.0)),
    (_RIGHT, (0.0825, 0.0, 0.0)),
    (_LEFT, (-0.0825, 0.384, 0.0)),
    (_RIGHT, (0.0, 0.0, 0.0)),
    (_RIGHT, (0.088, 0.0, 0.0)),
)
FLANGE = (0.0, 0.0, 0.107)  # in the last link [m]

# mass [kg], centre of mass [m], tensor about it [kg m^2]: xx, xy, xz, yy, yz, zz; all in the link's frame
_INERTIAS = (
    (4.970684, (3.875e-3, 2.081e-3, -0.1750), (0.70337, -1.39e-4, 6.772e-3, 0.70661, 1.9169e-2, 9.117e-3)),
    (0.646926, (-3.141e-3, -2.872e-2, 3.495e-3), (7.962e-3, -3.925e-3, 1.0254e-2, 2.811e-2, 7.04e-4, 2.5995e-2)),
    (3.228604, (2.7518e-2, 3.9252e-2, -6.6502e-2), (3.7242e-2, -4.761e-3, -1.1396e-2, 3.6155e-2, -1.2805e-2, 1.083e-2)),
    (3.587895, (-5.317e-2, 0.104419, 2.7454e-2), (2.5853e-2, 7.796e-3, -1.332e-3, 1.9552e-2, 8.641e-3, 2.8323e-2)),
    (1.225946, (-1.1953e-2, 4.1065e-2, -3.8437e-2), (3.5549e-2, -2.117e-3, -4.037e-3, 2.9474e-2, 2.29e-4, 8.627e-3)),
    (1.666555, (6.0149e-2, -1.4117e-2, -1.0517e-2), (1.964e-3, 1.09e-4, -1.158e-3, 4.354e-3, 3.41e-4, 5.433e-3)),
    (0.735522, (1.0517e-2, -4.252e-3, 6.1597e-2), (1.2516e-2, -4.28e-4, -1.196e-3, 1.0027e-2, -7.41e-4, 4.815e-3)),
)

_LIMITS = {
    "lower": (-2.8973, -1.7628, -2.8973, -3.0718, -2.8973, -0.0175, -2.8973),
    "upper": (2.8973, 1.7628, 2.8973, -0.0698, 2.8973, 3.7525, 2.8973),
    "velocity": (2.175, 2.175, 2.175, 2.175, 2.61, 2.61, 2.61),
    "acceleration": (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0),
    "jerk": (7500.0, 3750.0, 5000.0, 6250.0, 7500.0, 10000.0, 10000.0),
    "effort": (87.0, 87.0, 87.0, 87.0, 12.0, 12.0, 12.0),
    "effort_rate": (1000.0,) * 7,
}


def panda():
    """The Panda arm with identified inertial parameters; q = 0 is the vendor's zero.

    Joints panda_joint1 .. 7; links panda_link0 (base) .. panda_link7; frame panda_link8 is the flange, 0.107 m along z
    of panda_link7. No friction, no rotor inertia: what the identification found of the latter is in the links.
    Source: geometry and limits, the vendor's published robot specification of the Panda (FER); masses, centres of mass
    and tensors, Gaz, Cognetti, Oliva, Robuffo Giordano, De Luca: Dynamic Identification of the Franka Emika Panda Robot
    With Retrieval of Feasible Parameters Using Penalty-Based Optimization, IEEE RA-L 4(4), 2019. Tensors are about the
    centre of mass.
    """
    return franka_arm("panda", _INERTIAS, _LIMITS)


def panda_limits():
    """Limits of the Panda, {kind: (7,)}: lower, upper [rad], velocity, acceleration, jerk, effort [Nm], effort_rate."""
    return {kind: np.array(values) for kind, values in _LIMITS.items()}


def franka_arm(name, inertias, limits):
    """A robot of this geometry: inertias of the seven links (mass, com, six numbers), limits {kind: seven numbers}."""
    b = RobotBuilder(name)
    b.add_link(f"{name}_link0")
    for i, ((R, xyz), (mass, com, tensor)) in enumerate(zip(GEOMETRY, inertias, strict=True), start=1):
        b.add_body(
            f"{name}_link{i}",
            "revolute",
            f"{name}_link{i - 1}",
            joint=f"{name}_joint{i}",
            mass=mass,
            com=com,
            inertia=tensor,
            rotation=R,
            xyz=xyz,
            **{kind: values[i - 1] for kind, values in limits.items()},
        )
    b.add_frame(f"{name}_link8", f"{name}_link7", xyz=FLANGE)
    return b.build()
