"""Studies: measurements that anyone can repeat.

Each is a function run(out, quick=False, progress=None) that writes tables, figures and manifest.json to a folder, out,
and returns its report, a text; those that can compute their points elsewhere take executor, as in oc_dyn.executors.
Loaded when asked for.
"""

import inspect
import sys
from importlib import import_module
from pathlib import Path

from ..errors import ShapeError, UnknownName

STUDIES = {
    "ali": "oc_dyn.study.ali:run",
    "crocoddyl": "oc_dyn.study.reach:run",
    "garofalo": "oc_dyn.study.matrices:run",
    "growth": "oc_dyn.study.growth:run",
    "interrupts": "oc_dyn.study.interrupts:run",
    "kim": "oc_dyn.study.kim:run",
    "kumar_mueller": "oc_dyn.study.kumar_mueller:run",
    "matrices": "oc_dyn.study.matrices:run",
    "peers": "oc_dyn.study.peers:run",
    "second_order": "oc_dyn.study.second_order:run",
    "singh": "oc_dyn.study.singh:run",
    "solvers": "oc_dyn.study.solvers:run",
    "suite": "oc_dyn.study.suite:run",
    "sweeps": "oc_dyn.study.sweeps:run",
}


SAME = {"garofalo": "matrices"}  # names of papers whose study has a name of its own


def folder(name):
    """Where the results of a study are kept by default."""
    return Path("results") / SAME.get(name, name)


def run(name, out=None, quick=False, executor="serial", progress=None):
    """Run a study, and write report.html beside what it leaves in the folder `out`; returns its report, a text.

    executor: where its points are computed, see oc_dyn.executors. Raises UnknownName, ShapeError for an executor that
    is none or that the study does not take, OSError where `out` cannot be written.
    """
    from ..executors import checked
    from .html import write_report

    study, options = load(name), {}
    checked(executor)
    out = folder(name) if out is None else Path(out)
    if "executor" in inspect.signature(study).parameters:
        options["executor"] = executor
    elif executor != "serial":
        raise ShapeError(f"study {name}: it measures times and runs here alone, one point after the other: no executor")
    told = study(out, quick=quick, progress=progress, **options)
    module = sys.modules[study.__module__]
    note = write_report(out, name, told, module.__doc__ or "", getattr(module, "CAPTIONS", None))
    return f"{told}\n{note}" if note else told


def load(name):
    """The function of a study; UnknownName lists what there is."""
    if name not in STUDIES:
        raise UnknownName("study", name, STUDIES)
    module, function = STUDIES[name].split(":")
    return getattr(import_module(module), function)
