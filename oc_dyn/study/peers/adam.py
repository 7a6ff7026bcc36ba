"""Instructions of adam (adam-robotics with CasADi), counted where it is installed."""

import importlib.metadata
import tempfile
from pathlib import Path

import casadi as ca
from lxml import etree

from ..example_robots import example_file
from .robots import FILES, robot

GRAVITY = 9.81


def version():
    """Version of adam; None where it is not installed, or too old to know forward dynamics."""
    try:
        from adam.casadi import KinDynComputations
    except ImportError:
        return None
    return importlib.metadata.version("adam-robotics") if hasattr(KinDynComputations, "aba") else None


def counts(name, partials=True):
    """{(quantity, order): (form, instructions)} of the robot, as in recorded.csv; common subexpressions taken out."""
    import adam
    from adam.casadi import KinDynComputations

    path, floating, held = FILES[name]
    ours = robot(name)
    hinges = [j.name for j in ours.joints if j.kind != "free"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "robot.urdf"
        file.write_bytes(_readable(example_file(path), held))
        made = KinDynComputations(str(file), hinges, gravity=[0, 0, -GRAVITY, 0, 0, 0])
    made.set_frame_velocity_representation(adam.Representations.BODY_FIXED_REPRESENTATION)
    n = len(hinges) + (6 if floating else 0)
    q, v, x = ca.SX.sym("q", n + (1 if floating else 0)), ca.SX.sym("v", n), ca.SX.sym("x", n)
    base, twist = (_pose(q[:7]), v[:6]) if floating else (ca.SX.eye(4), ca.SX(6, 1))
    first = 0 if floating else 6  # a base that is held has no rows
    joints, rates = q[-len(hinges) :], v[-len(hinges) :]
    M = made.mass_matrix(base, joints)[first:, first:]
    h = made.bias_force(base, joints, twist, rates)[first:]
    tau = M @ x + h
    if floating:
        dv, form = made.aba(base, joints, twist, rates, x[6:]), "aba"
        dv = ca.vertcat(*dv) if isinstance(dv, (tuple, list)) else dv
    else:
        D, L, p = ca.ldl(M)
        dv, form = ca.ldl_solve(x - h, D, L, p), "M and h with LDL'"
    out = {
        ("inverse_dynamics", 0): ("M a + h", _count([q, v, x], [tau])),
        ("forward_dynamics", 0): (form, _count([q, v, x], [dv])),
        ("mass_matrix", 0): ("crba", _count([q], [ca.densify(M)])),
    }
    if partials:
        forms = {"inverse_dynamics": (tau, "best Jacobian of M a + h")}
        forms["forward_dynamics"] = dv, "best Jacobian of its forward dynamics"
        for quantity, (results, how) in forms.items():
            out[f"{quantity}_partials", 0] = how, _partials(q, v, x, results, floating)
    return out


def _count(inputs, results):
    return ca.Function("f", inputs, ca.cse(results)).n_instructions()


def _partials(q, v, x, results, floating):
    """The fewest instructions of the partials by a step of q, v and x: by one Jacobian, or by one for each."""
    step = _steps(q) if floating else ca.SX.eye(q.numel())
    results, n = ca.cse(results), q.numel()
    whole = ca.horzsplit(ca.jacobian(results, ca.vertcat(q, v, x)), [0, n, n + v.numel(), n + 2 * v.numel()])
    single = [ca.jacobian(results, y) for y in (q, v, x)]
    return min(_count([q, v, x], [ca.densify(y) for y in (a @ step, b, c)]) for a, b, c in (whole, single))


def _steps(q):
    """dq / d(step of q): position, quaternion (x, y, z, w), hinges; a step of the base is a twist [linear; angular]."""
    n = q.numel()
    x, y, z, w = ca.vertsplit(q[3:7])
    turn = ca.vertcat(ca.horzcat(w, -z, y), ca.horzcat(z, w, -x), ca.horzcat(-y, x, w), ca.horzcat(-x, -y, -z)) / 2
    return ca.diagcat(_rotation(q[3:7]), turn, ca.SX.eye(n - 7))


def _pose(q):
    return ca.blockcat([[_rotation(q[3:7]), q[:3]], [ca.SX(1, 3), ca.SX(1)]])


def _rotation(Q):
    x, y, z, w = ca.vertsplit(Q)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return ca.blockcat(rows)


def _readable(file, held):
    """The file's mechanics, without the links of held joints, and with the origins of inertias that adam needs."""
    tree = etree.fromstring(Path(file).read_bytes())
    gone = {joint.find("child").get("link") for joint in tree.findall("joint") if joint.get("name") in held}
    for element in list(tree):
        child = element.find("child")
        unwanted = element.get("name") in (gone if element.tag == "link" else held)
        unwanted |= element.tag not in ("link", "joint")
        if unwanted or (child is not None and child.get("link") in gone):
            tree.remove(element)
    for part in tree.findall("link/*") + tree.findall("joint/*"):
        if part.tag not in ("inertial", "parent", "child", "origin", "axis", "limit", "mimic"):
            part.getparent().remove(part)
    for inertial in tree.findall("link/inertial"):
        if inertial.find("origin") is None:
            etree.SubElement(inertial, "origin", xyz="0 0 0", rpy="0 0 0")
    return etree.tostring(tree)
