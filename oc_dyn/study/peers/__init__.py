"""This package beside its peers: instructions, and the time of generated C against routines of Pinocchio and MuJoCo.

Instructions are those of CasADi, the same on every machine. Times are ratios of one run, in which a routine of
Pinocchio, compiled for this machine, or of MuJoCo's wheel, and the generated C of the same quantity take turns; what
they compute is compared there too.
"""

import contextlib
import sys
import tempfile
from pathlib import Path

from ...errors import SolveError
from ...function import function
from ...registry import get_method, methods
from ...runs.manifest import manifest, write_json
from ...runs.stored_table import StoredTable, fingerprint
from .. import apart
from . import adam, mujoco, native, recorded
from .robots import FILES, HUMANOID, pinocchio_model, prescribed, robot
from .tables import report

QUICK = "ur5"
SECOND = "inverse_dynamics_second_partials"
ROUTINES = {  # of Pinocchio, by quantity
    "inverse_dynamics": "rnea",
    "forward_dynamics": "aba",
    "mass_matrix": "crba",
    "inverse_dynamics_partials": "rnea_derivatives",
    "forward_dynamics_partials": "aba_derivatives",
    SECOND: "rnea_second_derivatives",
}
TIMED = [(quantity, None) for quantity in ROUTINES] + [(SECOND, "compact")]
CODE = (  # the full set: quantity, order
    ("inverse_dynamics", 0),
    ("forward_dynamics", 0),
    ("hybrid_dynamics", 0),
    ("mass_matrix", 0),
    ("inverse_dynamics", 2),
    ("inverse_dynamics_partials", 0),
    ("forward_dynamics_partials", 0),
    ("inverse_dynamics_lagrangian_hessian", 0),
)
SMALL = ("-O2",)  # flags for the table of sizes
ROUNDS, MILLISECONDS = 101, 2.0
PEERS = ("pinocchio", "adam", "urdf2casadi")
COUNTED = (
    "instructions",
    "target",
    "ad_taylor",
    *(name for peer in PEERS for name in (peer, f"{peer}_form", f"{peer}_source")),
)
RATIO = ("instructions", "bytes", "seconds", "microseconds", "routine_microseconds")
RATIO += ("target", "ratio", "low", "high", "of_least", "to_faster", "error")
SIZED = ("instructions", "bytes", "seconds", "library_bytes")

CAPTIONS = {
    "peers.png": "Above: instructions over those of the shortest form of any peer. Below: time of the generated C over "
    "that of Pinocchio's routine and of MuJoCo's, medians of ratios within a round; 1 is as fast as the peer.",
    "code.csv": "Size of every Function of the full set as C, and of the library compiled of it.",
    "instructions.csv": "CasADi instructions: ours, what is aimed at, our strongest AD along the motion, and of every "
    "peer its shortest form.",
    "mujoco.csv": "Beside MuJoCo, both called from C++: by the steps that a result needs, and by the function of its "
    "interface that gives it among other things. python_microseconds: a call of the latter through the Python binding.",
    "ratios.csv": "Beside Pinocchio. ratio, low, high: median, 10th and 90th percentile within rounds; of_least: of "
    "the least times; to_faster: to the faster of its two conventions; error: largest relative difference.",
}


def run(out, quick=False, progress=None):
    """Measure and draw; returns the report as a text.

    out: folder for
    - instructions.csv: ours, the target, and the shortest form of every peer with its source: "this run" (adam, where
      it is installed) or "recorded" (recorded.csv says how);
    - ratios.csv: times over those of Pinocchio's routines as they are called by default: median, tenth and ninetieth
      percentile of the ratios of a round, ratio of the least times, of the medians to the faster of two conventions
      where the routine has two; largest relative difference of what they compute; bytes of C, seconds to compile;
    - mujoco.csv: times over those of MuJoCo, called from C++ too: of the steps that give the result ("steps"), and of
      mj_inverse and mj_forward ("interface"), with the time of a call of these through its Python binding;
    - code.csv: size of the full set of Functions as C, and seconds to compile it;
    - peers.png, manifest.json.
    Ratios and sizes that the same code left there are not measured again. Without a compiler, Pinocchio, MuJoCo or
    example-robot-data the parts that need them are left out, and the report says so. quick: instructions on a UR5
    alone. progress: show a bar on stderr; default on a terminal only.
    """
    from .figures import plot

    out, notes = Path(out), []
    names = [name for name in ((QUICK,) if quick else FILES) if robot(name)]
    if not names:
        notes.append("nothing was measured: the wheel example-robot-data is not installed")
    with _bar(progress, len(names) if quick else 4 * len(names) + 2) as bar:
        counts = _counts(out / "instructions.csv", names, bar, notes)
        ratios = [] if quick else _ratios(out / "ratios.csv", [*names, HUMANOID], bar, notes)
        others = out / "mujoco.csv", [*names, HUMANOID], bar, notes, MILLISECONDS, ROUNDS
        beside = [] if quick else mujoco.ratios(*others)
        sizes = [] if quick else _sizes(out / "code.csv", names, bar, notes)
    plot(counts, ratios, beside, out / "peers.png")
    command = apart.typed("peers", out, quick)
    facts = {"left_out": notes, "adam": adam.version(), "flags": native.FAST, "flags_of_sizes": SMALL}
    facts |= {"rounds": ROUNDS, "milliseconds": MILLISECONDS, **_versions()}
    facts |= {"cells": len(counts), "cells_above_target": [x for x in counts if x["instructions"] > x["target"]]}
    facts |= {"ratios_above_target": [x for x in ratios if x["target"] and x["ratio"] > x["target"]]}
    facts |= {"largest_relative_difference": max((x["error"] for x in ratios), default=None)}
    facts |= {"mujoco": mujoco.version(), "flags_beside_mujoco": mujoco.PORTABLE}
    facts |= {"largest_relative_difference_to_mujoco": max((x["error"] for x in beside), default=None)}
    write_json(out / "manifest.json", manifest(command, **facts))
    return report(counts, ratios, beside, sizes, notes)


def _versions():
    """Of what the ratios were measured with."""
    out = {}
    try:
        import pinocchio

        out["pinocchio"] = pinocchio.__version__
    except ImportError:
        pass
    with contextlib.suppress(SolveError):
        out["compiler"] = native.compiler_version()
    return out


def _code():
    return " ".join([fingerprint(), *_versions().values()])


# -- instructions ----------------------------------------------------------------------------------------------


def _counts(path, names, bar, notes):
    """Rows of the shortest form of every peer beside ours."""
    table, out = StoredTable(path, ("robot", "quantity", "order"), COUNTED), []
    if adam.version() is None:
        notes.append("adam is not installed: its instructions are the recorded ones")
    figures = recorded.recorded()
    for name in names:
        bar.set_postfix_str(f"instructions, {name}")
        bar.update()
        live = adam.counts(name) if adam.version() else {}
        r = robot(name)
        for quantity, order in recorded.TARGETS:
            row = {"robot": name, "quantity": quantity, "order": order}
            row["instructions"] = function(r, quantity, order=order).n_instructions()
            row["target"] = recorded.target(quantity, order, name)
            along = order and "ad_taylor" in methods(quantity)
            row["ad_taylor"] = function(r, quantity, order=order, method="ad_taylor").n_instructions() if along else ""
            for peer in PEERS:
                best = _best(figures, name, quantity, order, peer)
                if peer == "adam" and (quantity, order) in live:
                    best = (*live[quantity, order], "this run")
                row[f"{peer}_form"], row[peer], row[f"{peer}_source"] = best or ("", "", "")
            table.add(**row)
            out.append(row)
    table.close()
    return out


def _best(figures, name, quantity, order, peer):
    """(form, instructions, "recorded") of a peer's shortest form; None if it has none."""
    rows = [
        row
        for row in figures
        if (row["quantity"], row["order"], row["peer"]) == (quantity, order, peer) and row[name] is not None
    ]
    best = min(rows, key=lambda row: row[name], default=None)
    return best and (best["form"], best[name], "recorded")


# -- times -----------------------------------------------------------------------------------------------------


def _ratios(path, names, bar, notes):
    """Rows of quantities and methods: our time over that of Pinocchio's routine."""
    try:
        native.built()
    except SolveError as error:
        notes.append(f"no times: {error}")
        bar.update(len(names))
        return []
    table, out = StoredTable(path, ("robot", "quantity", "method"), RATIO, _code()), []
    for name in names:
        bar.set_postfix_str(f"times, {name}")
        bar.update()
        plan = [(q, m) for q, m in TIMED if name != HUMANOID or q == SECOND]
        keys = [{"robot": name, "quantity": q, "method": m or "default"} for q, m in plan]
        rows = [table.known(**key) for key in keys]
        if None in rows:
            rows = _timed(name, plan)
        for key, row in zip(keys, rows, strict=True):
            row = {**row, **key}
            table.add(**row)
            out.append({k: _number(row[k]) for k in (*key, *RATIO)})
    table.close()
    return out


def _timed(name, plan):
    """What one run of the benchmark says of the quantities and methods of the plan."""
    r, known, listed = robot(name), [], []
    with tempfile.TemporaryDirectory() as folder:
        for quantity, m in plan:
            label = f"{quantity}_{m}" if m else quantity
            f = function(r, quantity, method=m, name=label)  # renamed later, what calls Functions is written anew
            code = native.compiled(f, folder, label)
            straight = m is None or get_method(quantity, m).graph == "sx"
            facts = {"instructions": f.n_instructions() if straight else "", "bytes": code["bytes"]}
            known.append({**facts, "seconds": f"{code['seconds']:.2f}"})
            listed.append((label, code["library"], label, ROUTINES[quantity]))
        rows = native.times(r, pinocchio_model(name), listed, MILLISECONDS, ROUNDS)
    routines = {row["label"]: float(row["median_us"]) for row in rows[: len(rows) - len(plan)]}
    for (quantity, m), facts, row in zip(plan, known, rows[-len(plan) :], strict=True):
        routine, median = ROUTINES[quantity], float(row["median_us"])
        forms = [routines[x] for x in (routine, f"{routine}_world") if x in routines]
        facts |= {"microseconds": median, "routine_microseconds": forms[0], "to_faster": f"{median / min(forms):.4f}"}
        facts |= {"ratio": row["ratio"], "low": row["ratio_low"], "high": row["ratio_high"]}
        facts |= {"of_least": row["ratio_of_least"], "error": row["error"]}
        facts["target"] = "" if m else recorded.RATIOS.get((name, quantity), "")
    return known


def _number(text):
    try:
        return float(text)
    except (TypeError, ValueError):
        return text or None


# -- sizes -----------------------------------------------------------------------------------------------------


def _sizes(path, names, bar, notes):
    """Rows of Functions: what they are as C, compiled for any machine of this kind."""
    table, out = StoredTable(path, ("robot", "quantity", "order"), SIZED, _code()), []
    for name in names:
        bar.set_postfix_str(f"sizes, {name}")
        bar.update()
        r = robot(name)
        for quantity, order in CODE:
            key = {"robot": name, "quantity": quantity, "order": order}
            row = table.known(**key)
            if row is None:
                try:
                    row = _size(r, quantity, order)
                except SolveError as error:
                    notes.append(f"no sizes: {error}")
                    bar.update(len(names) - names.index(name) - 1)
                    table.close()
                    return out
            table.add(**{**row, **key})
            out.append({**key, **{k: _number(row[k]) for k in SIZED}})
    table.close()
    return out


def _size(r, quantity, order):
    options = {"prescribed": prescribed(r)} if quantity == "hybrid_dynamics" else {}
    f = function(r, quantity, order=order, **options)
    with tempfile.TemporaryDirectory() as folder:
        code = native.compiled(f, folder, quantity, SMALL)
    sizes = {k: code[k] for k in ("bytes", "library_bytes")}
    return {"instructions": f.n_instructions(), "seconds": f"{code['seconds']:.2f}", **sizes}


def _bar(progress, total):
    from tqdm import tqdm

    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    return tqdm(total=total, desc="peers", unit=" steps", file=sys.stderr, disable=not progress)
