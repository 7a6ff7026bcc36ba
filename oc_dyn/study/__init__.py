"""Studies: measurements that anyone can repeat.

Each is a function run(out, quick=False, progress=None) that writes tables, figures and manifest.json to the folder
`out` and returns its report, a text; those whose points can be computed elsewhere take executor, as in
oc_dyn.executors. A study's module is imported when it is needed.
"""

import inspect
import os
import sys
from importlib import import_module
from pathlib import Path

from ..errors import ShapeError, UnknownName
from ..executors import checked
from ..function_store import ENVIRONMENT
from ..runs.script import results_folder

STUDIES = {
    "accuracy_costs": "oc_dyn.study.accuracy_costs:run",
    "ali": "oc_dyn.study.ali:run",
    "batch_peers": "oc_dyn.study.batch_peers:run",
    "calls": "oc_dyn.study.calls:run",
    "crocoddyl": "oc_dyn.study.reach:run",
    "distances": "oc_dyn.study.distances:run",
    "embedded": "oc_dyn.study.embedded:run",
    "floating_nlp": "oc_dyn.study.floating_nlp:run",
    "formulations": "oc_dyn.study.formulations:run",
    "garofalo": "oc_dyn.study.matrices:run",
    "growth": "oc_dyn.study.growth:run",
    "interrupts": "oc_dyn.study.interrupts:run",
    "kim": "oc_dyn.study.kim:run",
    "kumar_mueller": "oc_dyn.study.kumar_mueller:run",
    "laboratory": "oc_dyn.study.laboratory:run",
    "loops": "oc_dyn.study.loops:run",
    "matrices": "oc_dyn.study.matrices:run",
    "mpc": "oc_dyn.study.mpc:run",
    "mpc_fuzz": "oc_dyn.study.mpc.fuzz:run",
    "ocp_peers": "oc_dyn.study.ocp_peers:run",
    "orders": "oc_dyn.study.orders:run",
    "path_peers": "oc_dyn.study.path_peers:run",
    "peers": "oc_dyn.study.peers:run",
    "planning": "oc_dyn.study.planning:run",
    "precision": "oc_dyn.study.precision:run",
    "robots": "oc_dyn.study.robots:run",
    "scene": "oc_dyn.study.scene:run",
    "second_order": "oc_dyn.study.second_order:run",
    "singh": "oc_dyn.study.singh:run",
    "solvers": "oc_dyn.study.solvers:run",
    "suite": "oc_dyn.study.suite:run",
    "suite_solvers": "oc_dyn.study.suite_solvers:run",
    "sweep_speed": "oc_dyn.study.sweep_speed:run",
    "sweeps": "oc_dyn.study.sweeps:run",
    "tasks": "oc_dyn.study.tasks:run",
    "waits": "oc_dyn.study.waits:run",
}


SAME = {"garofalo": "matrices"}  # names of papers whose study has a name of its own


def folder(name, quick=False):
    """Where a study writes its results by default."""
    return results_folder(SAME.get(name, name), quick)


def run(name, out=None, quick=False, executor="serial", progress=None, against=None, only=None):
    """Run a study, which writes its results to the folder `out`; returns its report, a text.

    executor: where its points are computed, see oc_dyn.executors. against: folder of an earlier checkout that is
    measured, too; only: texts, with semicolons between them, one of which is in the names of what is measured. Raises
    UnknownName, ShapeError for an executor that is none and for what the study does not take, OSError where `out`
    cannot be written.
    """
    study, options = load(name), {}
    checked(executor)
    out = folder(name, quick) if out is None else Path(out)
    taken = inspect.signature(study).parameters
    for what, given in (("against", against), ("only", only)):
        if what in taken:
            options[what] = given
        elif given is not None:
            raise ShapeError(f"study {name}: it takes no {what}, got {str(given)!r}")
    if "executor" in taken:
        options["executor"] = executor
    elif executor != "serial":
        raise ShapeError(f"study {name}: it measures times and runs here alone, one point after the other: no executor")
    before = os.environ.get(ENVIRONMENT)
    os.environ[ENVIRONMENT] = "off"  # what is measured is building, here and in processes that are started
    try:
        return study(out, quick=quick, progress=progress, **options)
    finally:
        os.environ.pop(ENVIRONMENT)
        if before is not None:
            os.environ[ENVIRONMENT] = before


def write_page(name, out=None, report=""):
    """Write report.html of the results of a study that are in the folder `out`; returns its path.

    report: the text that `run` returned, if it is at hand. Raises ShapeError where there are no results, or without
    Jinja2 (extra report).
    """
    from .html import write_report

    module = sys.modules[load(name).__module__]
    out = folder(name) if out is None else Path(out)
    if not has_results(out):
        raise ShapeError(f"study {name}: no results in {out}: there is no manifest.json")
    return write_report(out, name, report, module.__doc__ or "", getattr(module, "CAPTIONS", None))


def has_results(out):
    """Whether a study has finished in this folder."""
    return (Path(out) / "manifest.json").exists()


def load(name):
    """The function of a study; UnknownName lists the studies."""
    if name not in STUDIES:
        raise UnknownName("study", name, STUDIES)
    module, function = STUDIES[name].split(":")
    return getattr(import_module(module), function)
