"""What drives and brakes the joints of a compiled MJCF model: limits, damping, armature, actuators; and what is not.

Source: XML reference of MuJoCo (actuator/general: damping and armature are scaled by the gear squared, and summed).
"""

from __future__ import annotations

from typing import Any

import numpy as np

_FREE = 0
_ON_JOINT = (0, 1)  # kinds of transmission: joint, joint in the parent's frame
_UNFILTERED = (0, 2, 3)  # kinds of activation whose value stays in the range of the control: none, filters
Range = tuple[float, float]


def is_off(m: Any, what: str) -> bool:
    """Whether a flag of the file disables something: "EQUALITY", "LIMIT", ...; "constraint" disables three at once."""
    import mujoco

    bit = mujoco.mjtDisableBit
    off = getattr(bit, f"mjDSBL_{what}", 0)
    if what in ("EQUALITY", "LIMIT", "FRICTIONLOSS"):
        off |= bit.mjDSBL_CONSTRAINT
    return bool(m.opt.disableflags & int(off))


def is_limited(m: Any, j: int) -> bool:
    """Whether the range of a joint holds."""
    return bool(m.jnt_limited[j]) and not is_off(m, "LIMIT")


def passive(m: Any, j: int) -> dict[str, float]:
    """Armature, damping and friction loss of a joint of one velocity, with what its actuators add to them."""
    dof = int(m.jnt_dofadr[j])
    armature, damping = float(m.dof_armature[dof]), float(m.dof_damping[dof])
    for k in _actuators_on(m, j):
        square = float(m.actuator_gear[k][0]) ** 2
        armature += square * float(_of(m, "actuator_armature", k)[0])
        damping += square * float(_of(m, "actuator_damping", k)[0])
    return {
        "armature": armature,
        "damping": 0.0 if is_off(m, "DAMPER") else damping,
        "friction": 0.0 if is_off(m, "FRICTIONLOSS") else float(m.dof_frictionloss[dof]),
    }


def of_ball(m: Any, j: int) -> dict[str, float]:
    """Armature, damping and friction loss of a ball joint, alike about all axes."""
    dof = int(m.jnt_dofadr[j])
    return {
        "armature": float(m.dof_armature[dof]),
        "damping": 0.0 if is_off(m, "DAMPER") else float(m.dof_damping[dof]),
        "friction": 0.0 if is_off(m, "FRICTIONLOSS") else float(m.dof_frictionloss[dof]),
    }


def _actuators_on(m: Any, j: int) -> list[int]:
    return [k for k in range(m.nu) if m.actuator_trntype[k] in _ON_JOINT and m.actuator_trnid[k][0] == j]


def _of(m: Any, name: str, k: int) -> Any:
    """Row k of an array of the model that older MuJoCo does not have."""
    return np.atleast_1d(getattr(m, name)[k]) if hasattr(m, name) else np.zeros(1)


def effort(m: Any, j: int, name: str, notes: list[str]) -> dict[str, float]:
    """{"effort": limit [Nm, N]} of what the actuators give a joint in both directions, all together; {} without one."""
    low, high = -np.inf, np.inf
    on = _actuators_on(m, j)
    idle = [k for k in on if is_off(m, "ACTUATION") or _is_disabled(m, k)]
    if idle:
        notes.append(f"joint {name!r}: {len(idle)} of its actuators are disabled; their limits are not read")
        on = [k for k in on if k not in idle]
    if on:
        ranges = [_range(m, k) for k in on]
        low, high = sum(x[0] for x in ranges), sum(x[1] for x in ranges)
    if m.jnt_actfrclimited[j]:
        low, high = max(low, float(m.jnt_actfrcrange[j][0])), min(high, float(m.jnt_actfrcrange[j][1]))
    both = max(min(-low, high), 0.0)
    if on and both == 0 < max(-low, high):
        notes.append(f"joint {name!r}: its actuators push in one direction alone, so that its effort is 0")
    return {"effort": both} if np.isfinite(both) else {}


def _is_disabled(m: Any, k: int) -> bool:
    """Whether the group of an actuator is disabled."""
    group = int(m.actuator_group[k])
    return 0 <= group < 31 and bool(int(m.opt.disableactuator) >> group & 1)


def _range(m: Any, k: int) -> Range:
    """Smallest and largest force of an actuator on its joint, through its gear; infinite without a limit."""
    low, high = -np.inf, np.inf
    if m.actuator_forcelimited[k]:
        low, high = (float(x) for x in m.actuator_forcerange[k])
    straight = m.actuator_gaintype[k] == 0 and m.actuator_biastype[k] == 0 and m.actuator_dyntype[k] in _UNFILTERED
    if straight and m.actuator_ctrllimited[k] and not is_off(m, "CLAMPCTRL"):
        of_control = sorted(float(m.actuator_gainprm[k][0]) * float(x) for x in m.actuator_ctrlrange[k])
        low, high = max(low, of_control[0]), min(high, of_control[1])
    gear = float(m.actuator_gear[k][0])
    return (0.0, 0.0) if gear == 0 else (gear * low, gear * high) if gear > 0 else (gear * high, gear * low)


# -- what is not read ----------------------------------------------------------------------------------------------


def notes_of_several(m: Any, j: int, name: str) -> list[str]:
    """Of a free or ball joint."""
    size, notes = 6 if m.jnt_type[j] == _FREE else 3, []
    dofs = slice(m.jnt_dofadr[j], m.jnt_dofadr[j] + size)
    found = {"armature": m.dof_armature, "damping": m.dof_damping, "friction loss": m.dof_frictionloss}
    if size == 6 and (any(np.any(x[dofs]) for x in found.values()) or np.any(_rows(m, "dof_dampingpoly", dofs))):
        notes.append(f"joint {name!r} ({size} velocities): armature, damping and friction loss are not read")
    if size == 3 and np.any(_rows(m, "dof_dampingpoly", dofs)):
        notes.append(f"joint {name!r}: of its damping only the linear part is read")
    if m.jnt_limited[j]:
        notes.append(f"joint {name!r}: the range of a ball joint is not read")
    if _actuators_on(m, j):
        notes.append(f"joint {name!r} ({size} velocities): actuators on it are not read")
    return notes


def _rows(m: Any, name: str, rows: slice) -> Any:
    return getattr(m, name)[rows] if hasattr(m, name) else np.zeros(0)


def notes_of_model(m: Any, joints: list[str]) -> list[str]:
    """What changes the motion of a model and is not read."""
    notes = [x for j in range(m.njnt) for x in _notes_of_joint(m, j, joints[j])]
    for k in range(m.nu):
        added = np.any(_of(m, "actuator_armature", k)) or np.any(_of(m, "actuator_damping", k))
        if m.actuator_trntype[k] not in _ON_JOINT and added:
            notes.append(f"actuator {k}: armature and damping of an actuator that is not on a joint are not read")
    for count, what in ((m.ntendon, "tendons"), (m.nflex, "flexes"), (m.nplugin, "plugins")):
        if count:
            notes.append(f"{count} {what}: they are not read")
    if np.any(m.body_gravcomp):
        notes.append("compensation of gravity by bodies (gravcomp) is not read")
    if m.opt.density or m.opt.viscosity:
        notes.append("forces of the medium (density, viscosity) are not read")
    return notes


def _notes_of_joint(m: Any, j: int, name: str) -> list[str]:
    notes, of_one = [], m.jnt_type[j] > 1
    dof, stiffness = int(m.jnt_dofadr[j]), [m.jnt_stiffness[j], *_of(m, "jnt_stiffnesspoly", j)]
    if np.any(stiffness) and not is_off(m, "SPRING"):
        shown = " ".join(f"{x:g}" for x in np.trim_zeros(np.array(stiffness), "b"))
        notes.append(f"joint {name!r}: its spring, {shown} per unit, is not read")
    bent = [_of(m, "dof_dampingpoly", dof), *(_of(m, "actuator_dampingpoly", k) for k in _actuators_on(m, j))]
    if of_one and any(np.any(x) for x in bent) and not is_off(m, "DAMPER"):
        notes.append(f"joint {name!r}: of its damping only the linear part is read")
    if m.jnt_actgravcomp[j]:
        notes.append(f"joint {name!r}: compensation of gravity is not read")
    return notes
