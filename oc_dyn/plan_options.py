"""What `oc-dyn plan` makes of --payload, --tool, --to-pose and --frame: a robot that carries things, and a goal."""

import numpy as np

import oc_dyn as od

from .command_line import named_numbers, numbers_of
from .errors import ShapeError
from .lie import so3
from .model.inertia import Inertia
from .planning.trajectory import joint_units

_FAR = 4 * np.pi  # [rad]
_STARTS = 20  # of the search for a configuration at a pose
_TENSOR = ((0, 1, 2), (1, 3, 4), (2, 4, 5))  # places in ixx, ixy, ixz, iyy, iyz, izz
TOOL = "tool"
PAYLOAD = "FRAME=MASS[,X,Y,Z[,IXX,IXY,IXZ,IYY,IYZ,IZZ]]"
POSE = "X,Y,Z[,ROLL,PITCH,YAW | ,QW,QX,QY,QZ]"


def equipped(robot, tool, payloads):
    """The robot with a frame "tool" from FRAME=X,Y,Z[,ROLL,PITCH,YAW or quaternion], or None, and carrying payloads of
    words FRAME=MASS[,X,Y,Z[,IXX,IXY,IXZ,IYY,IYZ,IZZ]]; a payload may be fixed to the tool."""
    if tool is not None:
        ((frame, values),) = named_numbers("--tool", [tool]).items()
        p, R = _pose("--tool", values)
        robot = robot.with_frame(TOOL, frame, p, R)
    for frame, values in named_numbers("--payload", payloads).items():
        if len(values) not in (1, 4, 10):
            raise ShapeError(f"--payload {frame}: got {len(values)} numbers, expected 1, 4 or 10: {PAYLOAD}")
        if values[0] < 0:
            raise ShapeError(f"--payload {frame}: the mass is {values[0]:g} kg, expected 0 or more")
        com, tensor = (values[1:4] or (0, 0, 0)), np.array(values[4:] or [0.0] * 6)[[_TENSOR]][0]
        links, joints, *_ = robot.description
        taken = {*links, *(j.name for j in joints)}
        name, k = "payload", 2
        while name in taken:
            name, k = f"payload_{k}", k + 1
        robot = robot.with_payload(frame, Inertia.from_com(values[0], com, tensor), name)
    return robot


def scene_of(robot, file, clearance):
    """{"scene": Scene, "clearance": m} for planners, from the file of --scene, {} for None. The robot's own shapes are
    in it, too, but for those that the file has under the same names: a file may hold a robot's own."""
    if file is None:
        if clearance is not None:
            raise ShapeError("plan: --clearance is what the shapes of --scene keep; give that too, or leave it out")
        return {}
    scene = od.Scene.read(file)
    own = od.Scene.of(robot)
    given = {x.name for x in scene.items}
    scene = own.without(*(x.name for x in own.items if x.name in given)).join(scene)
    if not any(x.link is not None for x in scene.items):
        problem = f"{robot.name} has no collision shapes, and the file puts none on its links"
        raise ShapeError(f"--scene: {problem}; attach some there")
    return {"scene": scene, "clearance": 0.0 if clearance is None else clearance}


def turned_far(robot, positions):
    """A note on positions of joints without limits that are many turns, as of degrees; None where there are none."""
    lower, upper = robot.limit("lower"), robot.limit("upper")
    endless = np.isinf(lower) & np.isinf(upper) & (np.array(joint_units(robot)) == "rad")
    far = np.flatnonzero(endless & (np.abs(positions) > _FAR))
    if not far.size:
        return None
    name, x = robot.coordinate_names[far[0]], positions[far[0]]
    turns = abs(x) / (2 * np.pi)
    return f"joint {name!r} is to be at {x:g} rad, {turns:.1f} turns; {x:g} degrees are {np.deg2rad(x):.4g} rad"


def goal_at(robot, text, frame, start, bare=None, among=None):
    """(Configuration that brings the frame to a pose of that text, near the start, and what the manifest tells of
    it). frame: None for the tool, or the one outermost link of the robot, as it is without payloads (bare). among: of
    scene_of."""
    try:
        values = numbers_of(text)
    except ValueError as error:
        raise ShapeError(f"--to-pose: expected {POSE}: {error}") from None
    p, R = _pose("--to-pose", values)
    frame = _tip(robot, bare or robot) if frame is None else frame
    goal = od.inverse_kinematics(robot, frame, p=p, R=R, q_start=start, starts=_STARTS, **(among or {}))
    told = {"frame": frame, "p": p.tolist()} | ({} if R is None else {"R": R.tolist()})
    return goal, told


def _tip(robot, bare):
    if TOOL in robot.frames:
        return TOOL
    links, joints, *_ = bare.description
    parents = {j.parent for j in joints}
    tips = [name for name in links if name not in parents]
    if len(tips) != 1:
        raise ShapeError(f"--to-pose: {robot.name} has several outermost links, say which by --frame: {tips}")
    return tips[0]


def _pose(option, values):
    """(p (3,), R (3, 3) or None) from 3, 6 or 7 numbers."""
    p, turn = np.array(values[:3]), np.array(values[3:])
    if len(values) not in (3, 6, 7):
        raise ShapeError(f"{option}: got {len(values)} numbers, expected 3, 6 or 7: {POSE}")
    if not turn.size:
        return p, None
    if turn.size == 3:
        return p, np.array(so3.rpy(*turn), float)
    length = float(np.linalg.norm(turn))
    if not abs(length - 1) < 1e-3:
        raise ShapeError(f"{option}: the quaternion has the norm {length:.6g}, expected 1: {POSE}")
    return p, np.array(so3.quat_to_rot(turn / length), float)
