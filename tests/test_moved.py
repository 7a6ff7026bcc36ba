"""Names of the last release: modules that moved and classes that are called otherwise still answer, and warn."""

import importlib
import pickle
import sys

import pytest

import oc_dyn as od
from oc_dyn import _moved


@pytest.mark.parametrize("old, new", _moved.MODULES.items())
def test_modules_answer_to_their_old_names(old, new):
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now"):
        stand_in = importlib.import_module(old)
    today = importlib.import_module(new)
    public = [name for name, x in vars(today).items() if getattr(x, "__module__", None) == new]
    assert public
    assert all(getattr(stand_in, name) is getattr(today, name) for name in public)


@pytest.mark.parametrize(
    "module, name, today",
    [
        ("oc_dyn.planning.report", "Row", "oc_dyn.planning.report.ReportRow"),
        ("oc_dyn.control.mpc", "Controller", "oc_dyn.control.mpc.PredictiveController"),
        ("oc_dyn.planning.mpc", "Loop", "oc_dyn.control.mpc.ClosedLoop"),
        ("oc_dyn.elastic.closed_loop", "Loop", "oc_dyn.elastic.closed_loop.ClosedLoop"),
        ("oc_dyn.study.script", "Run", "oc_dyn.runs.script.ProblemRun"),
        ("oc_dyn.planning.check_rows", "CheckRow", "oc_dyn.optimal_control.check_rows.CheckRow"),
        ("oc_dyn.planning.contact_motion", "ContactMotion", "oc_dyn.optimal_control.contact_motion.ContactMotion"),
        ("oc_dyn.partials.design", "_point_mass", "oc_dyn.design.parameters._point_mass"),
        ("oc_dyn.planning.point_to_point", "_State", "oc_dyn.planning.point_to_point_search._State"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_was_pickled_by_its_old_name_is_found(module, name, today):
    where, _, what = today.rpartition(".")
    found = pickle.loads(f"c{module}\n{name}\n.".encode())
    assert found is getattr(importlib.import_module(where), what)


def test_a_name_that_never_was_is_not_there():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("oc_dyn.planning.nothing")
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        importlib.import_module("oc_dyn.planning.report").Nothing  # noqa: B018


def test_checks_of_scripts_take_the_old_form(tmp_path):
    run = od.runs.script.ProblemRun(tmp_path, True, lambda text: None)
    with pytest.warns(DeprecationWarning, match="below="):
        assert run.check("by position", 1.0, 2.0)
    with pytest.warns(DeprecationWarning, match="below="):
        assert not run.check("by name", error=3.0, below=2.0)
    assert run.checks["by name"] == {"value": 3.0, "below": 2.0, "passed": False}
