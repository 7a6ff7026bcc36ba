"""Second partials: how many instructions they take, how exact they are, how large their programs are.

Instructions are those of CasADi, the same on every machine. Errors are taken against the bicomplex step, in the four
metrics of Singh et al. 2023, eqs. 40 to 43, for chains and binary trees. Programs are generated C code, compiled where
there is a compiler, and timed.
"""

import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import casadi as ca
import numpy as np

from .. import robots
from ..errors import ModelWarning
from ..function import function
from ..inverse_dynamics.taylor import taylor
from ..model.builder import RobotBuilder
from ..model.canonical import canonical
from ..model.robot import tangent_map
from ..model.urdf import load_urdf
from ..registry import get, get_method, methods
from ..runs.manifest import manifest, write_json
from ..runs.stored_table import StoredTable
from ..second_partials import numeric
from ..second_partials.differences import from_bicomplex, from_values
from ..second_partials.tensor import pattern
from . import apart
from .example_robots import example_file

INVERSE, FORWARD = "inverse_dynamics_second_partials", "forward_dynamics_second_partials"
ROBOTS, QUICK = ("panda", "ur5", "hyq", "talos"), "double_pendulum"
FILES = {  # of the wheel example-robot-data: file, floating base
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "hyq": ("hyq_description/robots/hyq_no_sensors.urdf", True),
    "talos": ("talos_data/robots/talos_reduced.urdf", True),
}
LARGE = {  # robots on which methods that write everything out several times over are left out
    "talos": (INVERSE, ("composite", "compact", "ad", "ad_symmetric", "ad_pure", "spatial_vector")),
    "hyq": (FORWARD, ("composite", "ad", "ad_symmetric")),
}
REPEATED = "ad_of_ad"  # counted beside the methods: a Jacobian of a Jacobian, which does not know its symmetry
SIZES = (2, 5, 10, 20, 40, 60, 80, 100)
MOST_BODIES = {
    "composite": 20,
    "spatial_vector": 10,
    "chain_rule": 10,
    "ad": 20,
    "ad_symmetric": 20,
    "ad_pure": 10,
}  # to be built in seconds
CHUNK = 20  # columns of a tensor whose numerical derivatives are held at once
METRICS = ("max_abs", "rms_abs", "max_rel", "rms_rel")
PROGRAMS = (("panda", "composite"), *((name, "compact") for name in ("panda", "hyq", "humanoid", "talos")))

CAPTIONS = {
    "accuracy.png": "Errors of second partials against the bicomplex step over the number of bodies.",
    "accuracy.csv": "The same in four metrics: largest and root mean square, absolute and relative.",
    "instructions.csv": "CasADi instructions of second partials by robot and method; ad_of_ad: Jacobian of a Jacobian.",
    "programs.csv": "Programs of second partials as generated C: size, time to compile, time of a call.",
}


def run(out, quick=False, progress=None):
    """Measure and draw; returns the report as a text.

    out: folder for instructions.csv, accuracy.csv, programs.csv (rows that the same code left there are not measured
    again), accuracy.png, manifest.json. quick: few robots and bodies. progress: show a bar on stderr; default on a
    terminal only. Robots of files are left out where the wheel example-robot-data is not installed.
    """
    from .second_order_figures import plot_accuracy

    out = Path(out)
    names = [QUICK] if quick else [name for name in ROBOTS if robot(name)]
    plans = [(INVERSE, name) for name in names] + [(FORWARD, name) for name in names if name != "talos"]
    sizes = SIZES[:2] if quick else SIZES
    programs = [(name, m) for name, m in PROGRAMS if robot(name)]
    if quick:
        programs = [(QUICK, m) for m in ("composite", "compact")]
    with _bar(progress, len(plans) + 2 * len(sizes) + len(programs)) as bar:
        counts = _counts(out / "instructions.csv", plans, bar)
        errors = _errors(out / "accuracy.csv", sizes, bar)
        sizes_of_code = _programs(out / "programs.csv", programs, bar)
    plot_accuracy(errors, out / "accuracy.png")
    command = apart.typed("second_order", out, quick)
    facts = {"instructions": counts, "programs": sizes_of_code, "steps": _steps()}
    write_json(out / "manifest.json", manifest(command, **facts))
    return report(counts, errors, sizes_of_code)


def robot(name):
    """A new robot of this name; None if its file is missing."""
    if name == "humanoid":
        return humanoid()
    if name not in FILES:
        return robots.by_name(name)
    path, floating = FILES[name]
    file = example_file(path)
    if file is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return load_urdf(file, floating_base=floating)


LIMBS = {  # where it starts, then its joints: axis and how far [m] below the one before
    "torso": ("pelvis", (0.0, 0.0, 0.1), (("z", 0.0), ("y", 0.0), ("x", 0.0))),
    "neck": ("torso3", (0.0, 0.0, 0.4), (("z", 0.0), ("y", 0.0), ("x", 0.0))),
    "arm": ("torso3", (0.0, 0.2, 0.3), (("y", 0.0), ("x", 0.0), ("z", 0.0), ("y", 0.28), ("z", 0.0), ("y", 0.25))),
    "leg": ("pelvis", (0.0, 0.1, -0.05), (("z", 0.0), ("x", 0.0), ("y", 0.0), ("y", 0.4), ("y", 0.4), ("x", 0.0))),
}


def humanoid(seed=0):
    """A humanoid of 36 degrees of freedom: a floating pelvis and LIMBS, with two arms and two legs; axes along x, y or
    z, inertias of the same seed the same."""
    rng, b = np.random.default_rng(seed), RobotBuilder("humanoid_36")
    b.add_link("pelvis", mass=8.0, com=(0, 0, 0.05), inertia=np.diag([0.06, 0.05, 0.04]))
    for limb, (parent, start, joints) in LIMBS.items():
        for side, sign in (("left_", 1), ("right_", -1)) if start[1] else (("", 1),):
            on = parent
            for k, (axis, below) in enumerate(joints, 1):
                spread = rng.uniform(0.03, 0.1, 3) ** 2  # mean square extent of the mass along each axis [m^2]
                mass, unit = rng.uniform(0.5, 5), np.eye(3)["xyz".index(axis)]
                about = {"mass": mass, "inertia": mass * np.diag(spread.sum() - spread)}
                xyz = np.multiply(start, (1, sign, 1)) if k == 1 else (0, 0, -below)
                com, name = rng.uniform(-0.05, 0.05, 3), f"{side}{limb}{k}"
                b.add_body(name, "revolute", on, axis=unit, xyz=xyz, com=com, **about)
                on = name
    return b.build(floating_base=True)


# -- instructions ----------------------------------------------------------------------------------------------


def _counts(path, plans, bar):
    table, out = StoredTable(path, ("quantity", "robot", "method"), ("instructions", "seconds")), []
    for quantity, name in plans:
        bar.set_postfix_str(f"{quantity}, {name}")
        bar.update()
        which, names = LARGE.get(name, (None, None))
        for m in (*methods(quantity), *([REPEATED] if quantity == INVERSE else [])):
            record = None if m == REPEATED else get_method(quantity, m)
            if (record and record.graph != "sx") or (which == quantity and m not in names):
                continue  # what calls Functions is not counted in instructions
            row = {"quantity": quantity, "robot": name, "method": m}
            known = table.known(**row)
            if not known:
                start = time.perf_counter()
                count = _repeated(robot(name)) if m == REPEATED else _count(robot(name), quantity, m)
                known = {"instructions": count, "seconds": f"{time.perf_counter() - start:.3f}"}
            table.add(**row, instructions=known["instructions"], seconds=known["seconds"])
            out.append({**row, "instructions": int(known["instructions"])})
    table.close()
    return out


def _count(r, quantity, m):
    return function(r, quantity, method=m).n_instructions()


def _repeated(r):
    """Instructions of one Jacobian by all arguments of the one Jacobian of the torques, common ones taken out twice."""
    model, nq, nv = canonical(r, regroup=True), r.nq, r.nv
    q, v, a = (ca.SX.sym(x, n) for x, n in (("q", nq), ("v", nv), ("a", nv)))
    step = tangent_map(model.robot, q)
    tau = ca.cse(taylor(model, 0, q, [v, a])[0])
    by_q, by_v, M = ca.horzsplit(ca.jacobian(tau, ca.vertcat(q, v, a)), [0, nq, nq + nv, nq + 2 * nv])
    first = ca.cse([by_q @ step, by_v, M])
    J = ca.jacobian(ca.vertcat(*(ca.vec(x) for x in first)), ca.vertcat(q, v))
    qx, vx, ax = ca.vertsplit(J, nv * nv)
    blocks = [qx[:, :nq] @ step, vx[:, nq:], qx[:, nq:], ax[:, :nq] @ step]
    return ca.Function("f", [q, v, a], ca.cse(blocks)).n_instructions()


# -- accuracy --------------------------------------------------------------------------------------------------


def metrics(got, reference):
    """{metric: error} of the tensors (qq, vv, qv, aq) of a method, of all n (3 n)^2 second partials by (q, v, a)
    together: eqs. 40 to 43, those by (v, q) and (q, a) counted as often as they occur."""
    n = reference[0].shape[1]
    errors = [np.abs(a - b) for a, b in zip(got, reference, strict=True)]
    relative = [e / np.maximum(np.abs(b), 1) for e, b in zip(errors, reference, strict=True)]
    often = (1, 1, 2, 2)
    out = {}
    for name, x in (("abs", errors), ("rel", relative)):
        out[f"max_{name}"] = max(e.max() for e in x)
        out[f"rms_{name}"] = np.sqrt(sum(k * np.sum(e**2) for k, e in zip(often, x, strict=True)) / (9 * n**3))
    return out


def _errors(path, sizes, bar):
    table, out = StoredTable(path, ("robot", "bodies", "method"), METRICS), []
    for kind in ("chain", "tree"):
        for n in sizes:
            bar.set_postfix_str(f"accuracy, {kind} of {n}")
            bar.update()
            r, reference = robots.by_name(f"{kind}:{n}"), None
            rng = np.random.default_rng(n)
            at = r.random_configuration(n), *rng.normal(size=(2, n))
            for m in methods(INVERSE):
                if n > MOST_BODIES.get(m, n) or m == "bicomplex":
                    continue
                row = {"robot": kind, "bodies": n, "method": m}
                stored = table.known(**row)
                if not stored:
                    reference = reference or tensors(r, "bicomplex", *at)
                    stored = metrics(tensors(r, m, *at), reference)
                errors = {name: float(stored[name]) for name in METRICS}
                table.add(**row, **errors)
                out.append({**row, **errors})
    table.close()
    return out


def tensors(r, method, q, v, dv):
    """[qq, vv, qv, aq] (n n, n) by a method of inverse dynamics, in numbers; large numerical ones in parts."""
    numerical = {
        "bicomplex": (from_bicomplex, numeric.BICOMPLEX_STEP),
        "finite_difference_1": (from_values, numeric.FIRST_STEP),
    }
    if method not in numerical or r.nv <= CHUNK:
        return [np.array(x) for x in function(r, INVERSE, method=method).call([q, v, dv])]
    differentiate, step = numerical[method]
    model = canonical(r, regroup=True)
    f, every = numeric.dynamics(model, False, None), pattern(model)
    rows, columns = (np.array(x) for x in every.get_triplet())
    out = [np.zeros(every.shape) for _ in range(4)]
    for start in range(0, r.nv, CHUNK):
        chunk = (columns >= start) & (columns < start + CHUNK)
        places = ca.Sparsity.triplet(*every.shape, rows[chunk].tolist(), columns[chunk].tolist())
        inputs = [ca.MX.sym(*x) for x in (("q", r.nq), ("v", r.nv), ("dv", r.nv))]
        part = ca.Function("part", inputs, list(differentiate(f, model, *inputs, None, step, places)))
        for total, x in zip(out, part.call([q, v, dv]), strict=True):
            total += np.array(x)
    return out


def _steps():
    return {"finite_difference_1": numeric.FIRST_STEP, "finite_difference_2": numeric.SECOND_STEP}


# -- programs --------------------------------------------------------------------------------------------------


def _programs(path, programs, bar):
    table, out = StoredTable(path, ("robot", "method"), ("dof", "bytes", "compile_seconds", "microseconds")), []
    for name, m in programs:
        bar.set_postfix_str(f"program, {name}, {m}")
        bar.update()
        row = {"robot": name, "method": m}
        facts = table.known(**row) or program(robot(name), m)
        facts = {k: facts[k] for k in ("dof", "bytes", "compile_seconds", "microseconds")}
        table.add(**row, **facts)
        out.append({**row, **{k: float(x) if x else None for k, x in facts.items()}})
    table.close()
    return out


def program(r, method, flags=("-O2",), compiled=True):
    """C code of the second partials: {"dof", "bytes", "compile_seconds", "microseconds"}; the last two are empty where
    there is no C compiler, or it is not to be `compiled`."""
    f = function(r, INVERSE, method=method, name="second_partials")
    compiler = compiled and (shutil.which("gcc") or shutil.which("cc") or shutil.which("clang"))
    with tempfile.TemporaryDirectory() as folder:
        generator = ca.CodeGenerator("second_partials.c")
        generator.add(ca.Function(f))
        generator.generate(f"{folder}/")
        source, library = Path(folder) / "second_partials.c", Path(folder) / "second_partials.so"
        facts = {"dof": r.nv, "bytes": source.stat().st_size, "compile_seconds": "", "microseconds": ""}
        if compiler:
            start = time.perf_counter()
            done = subprocess.run([compiler, *flags, "-shared", "-fPIC", source, "-o", library, "-lm"], check=False)
            if done.returncode == 0:
                facts["compile_seconds"] = f"{time.perf_counter() - start:.2f}"
                facts["microseconds"] = f"{_time(ca.external('second_partials', str(library)), r):.2f}"
        return facts


def _time(f, r, rounds=15):
    """Median time of a call [us]."""
    rng = np.random.default_rng(0)
    inputs = [np.ascontiguousarray(x) for x in (r.random_configuration(0), *rng.normal(size=(2, r.nv)))]
    results = [np.zeros(f.nnz_out(k)) for k in range(f.n_out())]
    buffer, call = f.buffer()
    for k, x in enumerate(inputs):
        buffer.set_arg(k, memoryview(x))
    for k, x in enumerate(results):
        buffer.set_res(k, memoryview(x))
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(20):
            call()
        times.append((time.perf_counter() - start) / 20)
    return 1e6 * float(np.median(times))


# -- telling ---------------------------------------------------------------------------------------------------


def report(counts, errors, programs):
    """The tables as a text."""
    lines = ["Instructions of all second partials, and as a share of the least that AD of AD takes"]
    for quantity, name in dict.fromkeys((row["quantity"], row["robot"]) for row in counts):
        rows = [row for row in counts if (row["quantity"], row["robot"]) == (quantity, name)]
        pure = min((row["instructions"] for row in rows if row["method"] in ("ad_pure", REPEATED)), default=None)
        for row in sorted(rows, key=lambda row: row["instructions"]):
            mark = " (default)" if row["method"] == get(quantity).default[0] else ""
            share = f"{row['instructions'] / pure:8.2f}" if pure else ""
            lines.append(f"{quantity.split('_')[0]:9}{name:16}{row['method'] + mark:28}{row['instructions']:9}{share}")
    lines += ["", "Errors against the bicomplex step: largest and root mean square, absolute and relative"]
    lines += [
        f"{row['robot']:7}{row['bodies']:4}  {row['method']:22}" + "".join(f"{row[k]:10.1e}" for k in METRICS)
        for row in errors
    ]
    lines += ["", "Programs: size of the C code, time to compile it and of a call"]
    for row in programs:
        timed = row["compile_seconds"] is not None
        cost = f"{row['compile_seconds']:8.1f} s {row['microseconds']:9.1f} us" if timed else "   no compiler"
        lines.append(f"{row['robot']:16}{int(row['dof']):4} dof  {row['method']:10}{row['bytes'] / 1e6:7.2f} MB{cost}")
    return "\n".join(lines)


def _bar(progress, total):
    from tqdm import tqdm

    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    return tqdm(total=total, desc="second order", unit=" steps", file=sys.stderr, disable=not progress)
