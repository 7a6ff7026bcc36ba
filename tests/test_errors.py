"""Errors come back whole from other processes and from copies: every class of the package, with text and fields."""

import copy
import importlib
import inspect
import pickle
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import casadi as ca
import pytest

import oc_dyn as od

ARGUMENTS = {  # of the classes whose constructors take more than a text
    "ModelError": ("arm.urdf", ["joint 'a' has no axis", "link 'b' is there twice"]),
    "FileError": ("arm.csv", ["is cut"]),
    "UnknownName": ("joint", "elbwo", ("shoulder", "elbow")),
    "SolveError": ("it stopped", "Infeasible", ("v of elbow",), None),
}


def classes():
    """Every exception and warning that a module of the package defines."""
    found = set()
    for module in pkgutil.walk_packages(od.__path__, "oc_dyn."):
        if module.name.endswith("__main__"):
            continue
        try:
            members = vars(importlib.import_module(module.name)).values()
        except ImportError:  # of a study whose peer is not installed
            continue
        found |= {
            x for x in members
            if inspect.isclass(x) and issubclass(x, BaseException) and x.__module__.startswith("oc_dyn")
        }  # fmt: skip
    return sorted(found, key=lambda x: x.__name__)


def made(kind):
    error = kind(*ARGUMENTS.get(kind.__name__, ("port q got shape (3, 1), expected (7, 1)",)))
    error.note = {"kept": [1, 2.5]}
    return error


def test_the_classes_are_found():
    assert {"FileError", "LimitError", "ModelError", "ModelWarning", "UnknownName"} <= {x.__name__ for x in classes()}


@pytest.mark.parametrize("again", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", classes(), ids=lambda x: x.__name__)
def test_errors_come_back_whole(kind, again):
    error = made(kind)
    back = again(error)
    assert type(back) is kind
    assert str(back) == str(error)
    assert back.args == error.args
    assert vars(back) == vars(error)


def refuse():
    od.robots.panda().frame("hnd")


@pytest.mark.slow
def test_an_error_of_a_worker_is_that_error():
    with ProcessPoolExecutor(1, get_context("spawn")) as pool, pytest.raises(od.UnknownName, match="'hnd'.*available"):
        pool.submit(refuse).result(timeout=120)


def test_what_cannot_travel_is_left_behind_alone():
    error = od.SolveError("it stopped", status="time_limit", violations=("v",), trajectory=ca.MX.sym("x"))
    back = pickle.loads(pickle.dumps(error))
    assert (str(back), back.status, back.violations) == ("it stopped", "time_limit", ("v",))
    assert back.trajectory is None
    assert copy.copy(error).trajectory is error.trajectory


def test_a_file_error_is_a_model_error():
    assert issubclass(od.FileError, od.ModelError)
    assert str(od.FileError("a.csv", ["is cut"])) == "a.csv: is cut"
