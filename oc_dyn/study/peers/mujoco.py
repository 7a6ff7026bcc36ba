"""MuJoCo beside the generated C of the same robot: its routines, called from a program that is linked with its wheel.

A call through MuJoCo's Python binding takes longer than most of the routines; that time is reported as well, beside
the one in the program.
"""

import csv
import tempfile
import time
from pathlib import Path

import numpy as np

from ...errors import ModelError, SolveError
from ...function import function
from ...interop import rotation_to_quaternion, to_mujoco
from ...runs.stored_table import StoredTable, fingerprint
from . import native
from .robots import robot

ROUTINES = {  # by quantity: the steps that its result needs, and the function of the interface that includes it
    "inverse_dynamics": ("inverse_dynamics", "inverse_dynamics_whole"),
    "forward_dynamics": ("forward_dynamics", "forward_dynamics_whole"),
    "mass_matrix": ("mass_matrix",),
    "bias": ("bias",),
}
CALLED = {  # what a routine calls
    "inverse_dynamics": "mj_kinematics mj_comPos mj_comVel mj_rne",
    "inverse_dynamics_whole": "mj_inverse",
    "forward_dynamics": "mj_kinematics mj_comPos mj_comVel mj_makeM mj_factorM mj_rne mj_solveM",
    "forward_dynamics_whole": "mj_forward",
    "mass_matrix": "mj_kinematics mj_comPos mj_makeM mj_fullM",
    "bias": "mj_kinematics mj_comPos mj_comVel mj_rne",
}
KEYS = ("robot", "quantity", "routine")
VALUES = ("instructions", "microseconds", "mujoco_microseconds", "ratio", "low", "high", "of_least")
VALUES += ("python_microseconds", "error", "called")
PORTABLE = ("-O3",)  # the library of the wheel is not compiled for this machine alone either
SOURCES = ("benchmark_mujoco.cpp", "timed.hpp")
STATES = 64
_KINDS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}
_OFF = ("constraint", "contact", "limit", "spring", "damper", "actuation", "sensor", "eulerdamp")


def version():
    """Version of MuJoCo; None where it is not installed, or older than 4: mj_fullM had other arguments, and inertias
    were rounded."""
    try:
        import mujoco
    except ImportError:
        return None
    return mujoco.__version__ if int(mujoco.__version__.partition(".")[0]) >= 4 else None


def ratios(path, names, bar, notes, milliseconds, rounds):
    """Rows of quantities: the time of our generated C over that of MuJoCo's steps, and of its interface's function."""
    try:
        built()
    except SolveError as error:
        notes.append(f"no times of MuJoCo: {error}")
        bar.update(len(names))
        return []
    table, out = StoredTable(path, KEYS, VALUES, f"{fingerprint()} {version()}"), []
    for name in names:
        bar.set_postfix_str(f"MuJoCo, {name}")
        bar.update()
        plan = [(quantity, x) for quantity, routines in ROUTINES.items() for x in routines]
        keys = [{"robot": name, "quantity": quantity, "routine": _way(x)} for quantity, x in plan]
        rows = [table.known(**key) for key in keys]
        if None in rows:
            rows = _timed(robot(name), plan, milliseconds, rounds)
        for key, row in zip(keys, rows, strict=True):
            table.add(**{**row, **key})
            out.append({**key, **{k: _number(row[k]) for k in VALUES}})
    table.close()
    return out


def _way(routine):
    return "interface" if routine.endswith("_whole") else "steps"


def _number(text):
    try:
        return float(text)
    except ValueError:
        return text or None


def _timed(r, plan, milliseconds, rounds):
    codes, listed = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for quantity in ROUTINES:
            f = function(r, quantity, name=quantity)
            codes[quantity] = native.compiled(f, folder, quantity, PORTABLE)["library"], f.n_instructions()
        for quantity, routine in plan:
            listed.append((f"{routine}_ours", codes[quantity][0], quantity, routine))
        rows = times(r, listed, milliseconds, rounds)
    theirs = {row["label"]: row["median_us"] for row in rows[: -len(plan)]}
    python, out = through_python(r), []
    for (quantity, routine), row in zip(plan, rows[-len(plan) :], strict=True):
        facts = {"instructions": codes[quantity][1], "microseconds": row["median_us"], "called": CALLED[routine]}
        facts |= {"mujoco_microseconds": theirs[routine], "ratio": row["ratio"], "low": row["ratio_low"]}
        facts |= {"high": row["ratio_high"], "of_least": row["ratio_of_least"], "error": row["error"]}
        facts["python_microseconds"] = f"{python[routine]:.6g}" if routine in python else ""
        out.append(facts)
    return out


def mjcf(r):
    """The robot as MJCF: dynamics without contacts, limits, springs and damping.

    Raises ModelError for joints that MuJoCo has not: it knows revolute, prismatic, spherical and free ones, the last
    on the ground, and none that follow others.
    """
    wrong = [f"joint {j.name!r} is {j.kind}" for j in r.joints if j.kind not in _KINDS]
    wrong += [f"joint {j.name!r} follows another one" for j in r.mimics]
    if wrong:
        raise ModelError(f"MJCF of {r.name}", wrong)
    flags = " ".join(f'{name}="disable"' for name in _OFF)
    head = '<compiler angle="radian" autolimits="false"/>'
    head += f'<option gravity="{_numbers(r.gravity)}"><flag {flags}/></option>'
    return f"<mujoco>{head}<worldbody>{_grown(r, 0)}</worldbody></mujoco>"


def _grown(r, parent):
    text = ""
    for b in (b for b in r.bodies if b.parent == parent):
        T, place = b.inertia.tensor_com, _numbers(rotation_to_quaternion(b.rotation))
        tensor = _numbers((T[0, 0], T[1, 1], T[2, 2], T[0, 1], T[0, 2], T[1, 2]))
        axis = f'axis="{_numbers(b.joint.axis)}" ' if b.joint.nq == 1 else ""
        text += f'<body name="body{b.index}" pos="{_numbers(b.translation)}" quat="{place}">'
        text += f'<inertial pos="{_numbers(b.inertia.com)}" mass="{float(b.inertia.mass)!r}" fullinertia="{tensor}"/>'
        text += f'<joint name="{_escaped(b.joint.name)}" type="{_KINDS[b.joint.kind]}" {axis}'
        text += f'armature="{float(b.joint.armature)!r}"/>{_grown(r, b.index)}</body>'
    return text


def _numbers(values):
    return " ".join(repr(float(x)) for x in np.ravel(values))


def _escaped(name):
    return name.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


def model(r):
    """The robot as mujoco.MjModel; ImportError without MuJoCo."""
    import mujoco

    return mujoco.MjModel.from_xml_string(mjcf(r))


def states(r, count=STATES, seed=0):
    """Random q, v, dv and tau of the robot: {name: (count, n)}."""
    rng = np.random.default_rng(seed)
    v, dv, tau = rng.uniform(-1, 1, size=(3, count, r.nv))
    return {"q": np.array([r.random_configuration(k) for k in range(count)]), "v": v, "dv": dv, "tau": 10 * tau}


def _their(to, s, k):
    """State number k in MuJoCo's coordinates: q, v, dv, tau."""
    q, v, dv, tau = (s[name][k] for name in ("q", "v", "dv", "tau"))
    return to.q(q), to.v(v, q), to.dv(dv, v, q), to.tau(tau, q)


def built():
    """Path of the program, compiled where the cache of compiled code does not hold it; SolveError says what is
    missing, or what the compiler says."""
    native.find_compiler()
    if version() is None:
        raise SolveError("MuJoCo 4 or newer is not installed (pip install 'mujoco>=4')")
    import mujoco

    folder = Path(mujoco.__file__).resolve().parent
    shared = sorted((*folder.glob("libmujoco.so*"), *folder.glob("libmujoco.*dylib")))
    if not shared or not (folder / "include/mujoco/mujoco.h").is_file():
        raise SolveError("the wheel of MuJoCo has no library or no headers to link with")
    places = [folder / "include", native.eigen()]
    return native.program("mujoco", SOURCES, places, version(), libraries=(shared[0], f"-Wl,-rpath,{folder}"))


def times(r, functions, milliseconds=2.0, rounds=101):
    """Rows {column: text} of the program: of MuJoCo's routines, then of the functions, these with "error", the largest
    difference of results relative to the largest entry, over eight states.

    functions: [(label, library, symbol, routine)], with one of mass_matrix, which is needed to compare a bias.
    """
    program, theirs = built(), model(r)
    to, s = to_mujoco(r, theirs), states(r)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "model.xml").write_text(mjcf(r), encoding="utf-8")
        lines = [f"{STATES} {to.nq} {to.nv} {r.nq} {r.nv}"]
        for k in range(STATES):
            lines += [_numbers(x) for x in (*_their(to, s, k), *(s[name][k] for name in ("q", "v", "dv", "tau")))]
        (folder / "states.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        native.write_functions(folder / "functions.txt", functions)
        words = [program, "model.xml", "states.txt", "functions.txt", milliseconds, rounds, "results.csv"]
        rows = native.measured(words, folder, r.name)
        with open(folder / "results.csv", newline="", encoding="utf-8") as file:
            errors = _errors(r, to, s, list(csv.DictReader(file)))
    return [{**row, "error": f"{errors[row['label']]:.6g}"} if row["label"] in errors else row for row in rows]


def _errors(r, to, s, outputs):
    """{label: largest relative difference} of what the program wrote down."""
    read = [{**row, **{k: np.array(row[k].split(), float) for k in ("theirs", "ours")}} for row in outputs]
    M = {int(row["state"]): row["theirs"].reshape(to.nv, to.nv) for row in read if row["routine"] == "mass_matrix"}
    out = {}
    for row in read:
        k, kind = int(row["state"]), row["routine"].removesuffix("_whole")
        q, v, ours = s["q"][k], s["v"][k], row["ours"]
        x, dx, *_ = _their(to, s, k)
        if kind == "mass_matrix":
            T = to.velocity_matrix(q)
            want, ours = T.T @ M[k] @ T, ours.reshape(r.nv, r.nv)
        elif kind == "forward_dynamics":
            want = to.from_dv(row["theirs"], dx, x)
        elif kind == "bias":  # at our dv = 0, which need not be theirs
            want = to.from_tau(row["theirs"] + M[k] @ to.dv(np.zeros(r.nv), v, q), x)
        else:
            want = to.from_tau(row["theirs"], x)
        off = np.abs(ours - want).max() / max(np.abs(want).max(), 1e-300)
        out[row["label"]] = off if np.isnan(off) else max(off, out.get(row["label"], 0.0))
    return out


def through_python(r, calls=2000, rounds=11):
    """{routine: microseconds} of mj_inverse and mj_forward called by Python, state unchanged: medians of runs."""
    import mujoco

    theirs = model(r)
    data, s = mujoco.MjData(theirs), states(r, 1)
    data.qpos[:], data.qvel[:], data.qacc[:], data.qfrc_applied[:] = _their(to_mujoco(r, theirs), s, 0)
    routines = {"inverse_dynamics_whole": mujoco.mj_inverse, "forward_dynamics_whole": mujoco.mj_forward}
    seconds = {name: [] for name in routines}
    for _ in range(rounds):
        for name, routine in routines.items():
            start = time.perf_counter()
            for _ in range(calls):
                routine(theirs, data)
            seconds[name].append((time.perf_counter() - start) / calls)
    return {name: 1e6 * float(np.median(x)) for name, x in seconds.items()}
