"""Robots of wheels that are installed: which load, and how far masses and torques are from Pinocchio's and MuJoCo's.

URDF and SDF files of example-robot-data beside Pinocchio, MJCF files of wheels beside MuJoCo, which compiles them;
springs, friction, contacts, limits, actuators and media are turned off there. Robots with loops are loaded alone.
"""

import importlib.metadata
import importlib.util
import re
import warnings
from pathlib import Path

import numpy as np

from ..errors import ALL
from ..files import read_text, write_csv
from ..function import function
from ..interop import to_mujoco, to_pinocchio
from ..model.loops import LoopRobot
from ..robots.load import load
from ..runs.manifest import manifest, write_json
from ..runs.points import bar

URDF = ("example-robot-data",)
MJCF = ("mujoco_menagerie", "robosuite", "dm_control", "gymnasium")
FIELDS = ("wheel", "file", "format", "outcome", "q", "v", "mass [kg]", "mass difference", "torque difference", "reason")
CAPTIONS = {"robots.csv": "Files of wheels: loaded or refused, and the largest differences, over the largest value."}
POINTS = 3
SMALL = 1e-9


def files_of(wheel):
    """Descriptions of robots in an installed wheel, sorted; none where it is not installed."""
    try:
        found = importlib.metadata.files(wheel) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    return sorted(Path(str(x.locate())) for x in found if str(x).endswith((".urdf", ".sdf", ".xml")) and _is_robot(x))


def _is_robot(entry):
    path = Path(str(entry.locate()))
    if path.suffix != ".xml":
        return True
    head = re.sub(r"<!--.*?-->|<\?.*?\?>", "", read_text(path, 2_000_000), flags=re.DOTALL)
    return "<mujoco" in head[:400] and "<worldbody" in head


def run(out, quick=False, progress=None):
    """Measure and write robots.csv and manifest.json to the folder `out`; returns the summary as a text.

    quick: three files of a wheel. progress: show a bar on stderr; default on a terminal only.
    """
    files = [(wheel, path) for wheel in (*URDF, *MJCF) for path in files_of(wheel)[: 3 if quick else None]]
    rows = []
    with bar(progress, len(files), "robots", " files") as shown:
        for wheel, path in files:
            rows.append({"wheel": wheel, "file": _short(path), **measured(path)})
            shown.update(1)
    folder = Path(out)
    write_csv(folder / "robots.csv", [FIELDS, *([row.get(k, "") for k in FIELDS] for row in rows)])
    wheels = {w: importlib.metadata.version(w) for w in dict.fromkeys(r["wheel"] for r in rows)}
    command = "oc-dyn study robots" + (" --quick" if quick else "")
    write_json(folder / "manifest.json", manifest(command, wheels=wheels, **summary(rows)))
    return report(rows)


def _short(path):
    return "/".join(path.parts[-3:])


def measured(path):
    """{field: value} of a file."""
    kind = {".urdf": "URDF", ".sdf": "SDF"}.get(path.suffix, "MJCF")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            robot = load(path)
        except ALL as error:
            problems = getattr(error, "problems", [str(error)])
            return {"format": kind, "outcome": "refused", "reason": " ".join(problems[0].split())[:160]}
        row = {"format": kind, "outcome": "loaded", "q": robot.nq, "v": robot.nv}
        row["mass [kg]"] = f"{robot.total_mass:.6g}"
        try:
            compared = (beside_mujoco if kind == "MJCF" else beside_pinocchio)(robot, path)
        except NotComparable as error:
            return {**row, "reason": str(error)}
    return {**row, **{k: f"{x:.1e}" for k, x in compared.items()}}


class NotComparable(Exception):
    """Why a robot is not compared."""


def motions(robot):
    """[(q, v, dv)] at random."""
    rng = np.random.default_rng(0)
    return [(robot.random_configuration(k), *rng.normal(size=(2, robot.nv))) for k in range(POINTS)]


def beside_pinocchio(robot, path):
    """{"mass difference", "torque difference"} to Pinocchio's model of the same file."""
    if isinstance(robot, LoopRobot):
        raise NotComparable("loops: Pinocchio's reader makes a tree of it")
    if path.suffix != ".urdf":
        raise NotComparable("Pinocchio's wheel reads no SDF")
    if importlib.util.find_spec("pinocchio") is None:
        raise NotComparable("pinocchio is not installed")
    import pinocchio

    try:
        model = pinocchio.buildModelFromUrdf(str(path), mimic=True)
    except (ValueError, RuntimeError) as error:
        raise NotComparable(f"Pinocchio refuses it: {' '.join(str(error).split())[:100]}") from None
    if not robot.nv:
        raise NotComparable("nothing moves")
    data, theirs = model.createData(), _convertible(to_pinocchio, robot, model)
    worst, f = 0.0, function(robot, "inverse_dynamics")
    for q, v, dv in motions(robot):
        wanted = pinocchio.rnea(model, data, theirs.q(q), theirs.v(v, q), theirs.dv(dv, v, q))
        worst = max(worst, _off(f(q, v, dv), theirs.from_tau(wanted, theirs.q(q)), robot))
    return {"mass difference": _mass_off(robot, sum(x.mass for x in model.inertias[1:])), "torque difference": worst}


def beside_mujoco(robot, path):
    """The same to MuJoCo's model, without all that is no rigid-body dynamics."""
    if isinstance(robot, LoopRobot):
        raise NotComparable("loops: MuJoCo holds them by soft constraints")
    import mujoco

    model = mujoco.MjModel.from_xml_path(str(path)) if not _lacks_pictures(path) else _compiled_without(path)
    off = mujoco.mjtDisableBit
    model.opt.disableflags |= off.mjDSBL_CONSTRAINT | off.mjDSBL_ACTUATION | off.mjDSBL_SPRING | off.mjDSBL_DAMPER
    model.opt.density, model.opt.viscosity, model.body_gravcomp[:] = 0, 0, 0
    for j in np.flatnonzero(model.jnt_type < 2):
        size = 6 if model.jnt_type[j] == 0 else 3
        model.dof_armature[model.jnt_dofadr[j] : model.jnt_dofadr[j] + size] = 0
    if not robot.nv:
        raise NotComparable("nothing moves")
    data, theirs = mujoco.MjData(model), _convertible(to_mujoco, robot, model)
    worst, f = 0.0, function(robot, "inverse_dynamics")
    for q, v, dv in motions(robot):
        data.qpos[:], data.qvel[:] = theirs.q(q), theirs.v(v, q)
        mujoco.mj_forward(model, data)
        data.qacc[:] = theirs.dv(dv, v, q)
        mujoco.mj_inverse(model, data)
        worst = max(worst, _off(f(q, v, dv), theirs.from_tau(data.qfrc_inverse.copy(), data.qpos.copy()), robot))
    moving = (model.body_weldid > 0) & (model.body_mocapid < 0)
    return {"mass difference": _mass_off(robot, model.body_mass[moving].sum()), "torque difference": worst}


def _lacks_pictures(path):
    """Whether MuJoCo's own reader would fail on textures, which count for nothing."""
    import mujoco

    try:
        mujoco.MjModel.from_xml_path(str(path))
    except ValueError:
        return True
    return False


def _compiled_without(path):
    import mujoco

    from ..model.mjcf_read import read_mjcf

    file = read_mjcf(path)
    return mujoco.MjModel.from_xml_string(file.text, file.assets)


def _convertible(convert, robot, model):
    try:
        return convert(robot, model)
    except ALL as error:
        raise NotComparable(f"not comparable: {' '.join(str(error).split())[:140]}") from None


def _off(found, wanted, robot):
    """Largest difference over the largest torque, or the weight at a lever of 1 m where torques are small."""
    found, wanted = np.array(found).ravel(), np.asarray(wanted).ravel()
    return float(np.abs(found - wanted).max() / max(np.abs(wanted).max(), 1e-3 * 9.81 * max(robot.total_mass, 1e-3)))


def _mass_off(robot, theirs):
    """Of what moves, over theirs."""
    ours = sum(b.inertia.mass for b in robot.bodies)
    return abs(ours - theirs) / max(theirs, 1e-9)


def summary(rows):
    """{wheel: {"files", "loaded", "compared", "largest"}}."""
    out = {}
    for wheel in dict.fromkeys(r["wheel"] for r in rows):
        of = [r for r in rows if r["wheel"] == wheel]
        compared = [float(r["torque difference"]) for r in of if "torque difference" in r]
        loaded = sum(r["outcome"] == "loaded" for r in of)
        largest = max(compared, default=0.0)
        out[wheel] = {"files": len(of), "loaded": loaded, "compared": len(compared), "largest": largest}
    return {"summary": out}


def report(rows):
    """The summary, what was refused and what differs, as a text."""
    lines = ["Robots of wheels: files, loaded, compared, largest difference of inverse dynamics"]
    for wheel, x in summary(rows)["summary"].items():
        lines.append(f"  {wheel:20}{x['files']:5}{x['loaded']:5}{x['compared']:5}   {x['largest']:.1e}")
    for row in rows:
        if row["outcome"] == "refused":
            lines.append(f"refused: {row['file']}: {row['reason']}")
        elif float(row.get("torque difference", 0)) > SMALL:
            lines.append(f"DIFFERS: {row['file']}: {row['torque difference']}")
    return "\n".join(lines)
