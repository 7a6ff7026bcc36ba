"""The digest of what decides a result: another one whenever a result may differ, the same in every process."""

import collections
import dataclasses
import enum
import functools
import os
import subprocess
import sys
import threading
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.digest import digest, version
from oc_dyn.errors import ShapeError

GAIN = {"k": 1.0}


def maker(factor, offset=0.0):
    def f(x, *, power=2):
        return factor * x**power + offset

    return f


class Machine:
    rate = 1.0

    def __init__(self, gain):
        self._gain = gain

    def run(self, x):
        return self._gain * self.rate * x


class Quiet(Machine):
    """Keeps its gain to itself when it is pickled."""

    def __getstate__(self):
        return {}

    def __setstate__(self, state):
        pass


class Slotted:
    __slots__ = ("__gain",)

    def __init__(self, gain):
        self.__gain = gain


@dataclasses.dataclass
class Config:
    gain: float = 1.0
    more: list = dataclasses.field(default_factory=list)


class Kind(enum.Enum):
    A = 1
    B = 2


def by_global(x):
    return GAIN["k"] * x


def calls(x):
    return [by_global(y) for y in (x,)][0]


def imports(x):
    from test_digest import GAIN

    return GAIN["k"] * x


def by_name(x):
    return eval("GAIN")["k"] * x


def problem(**changes):
    given = {
        "cost": 1.0, "bound": 20.0, "guess": 0.0, "scale": None, "duration": 1.0, "nodes": 10, "goal": 1.0, "rows": 5.0,
        "limit": 3.0, "terminal": 0.0, "phases": 1, "share": True,
    } | changes  # fmt: skip
    ocp = od.Problem(nodes=given["nodes"], duration=given["duration"])
    x = ocp.state("x", 2, scale=given["scale"], guess=given["guess"], lower=-given["limit"], upper=given["limit"])
    a, b, u = ocp.parameter("m"), ocp.parameter("n"), ocp.control("u", lower=-given["bound"], upper=given["bound"])
    for _ in range(given["phases"] - 1):
        ocp.phase(5, 1.0)
    ocp.rate(x, ca.vertcat(x[1], u / a))
    ocp.limit(-given["rows"], x[1] + u * (a if given["share"] else b), given["rows"])
    ocp.start({x: [0, 0]})
    ocp.goal({x: [given["goal"], 0]})
    ocp.minimize(integral=given["cost"] * u**2, terminal=given["terminal"] * x[0])
    return ocp


CHANGES = {
    "cost": 2.0, "bound": 10.0, "guess": 0.5, "scale": 4.0, "duration": (0.5, 2.0), "nodes": 11, "goal": 2.0,
    "rows": 6.0, "limit": 4.0, "terminal": 1.0, "phases": 2, "share": False,
}  # fmt: skip


def differ(*values):
    found = [digest(x) for x in values]
    assert len(set(found)) == len(values)


@pytest.mark.parametrize("change", CHANGES)
def test_all_that_a_problem_holds_counts(change):
    first = digest(problem())
    assert digest(problem()) == first
    assert digest(problem(**{change: CHANGES[change]})) != first


def test_solving_a_problem_does_not_change_it():
    made = problem(bound=100.0, rows=100.0)
    before = digest(made)
    made.solve(parameters={"m": 1.0, "n": 1.0})
    assert digest(made) == before


def test_functions_count_with_closure_defaults_and_constants():
    same, other = maker(2.0), maker(2.0)
    assert digest(same) == digest(other)
    other.__defaults__, other.__kwdefaults__ = None, {"power": 3}
    differ(maker(2.0), maker(3.0), maker(2.0, 1.0), other, lambda x: 2.0 * x, lambda x: 3.0 * x)


def test_bound_objects_count_with_private_attributes():
    differ(Machine(1.0).run, Machine(2.0).run, Quiet(1.0).run, Quiet(2.0).run)
    differ(Slotted(1.0), Slotted(2.0))


@pytest.mark.parametrize("f", [by_global, calls, imports, by_name], ids=lambda f: f.__name__)
def test_globals_count_all_the_way_down(f, monkeypatch):
    before = digest(f)
    monkeypatch.setitem(GAIN, "k", 2.0)
    assert digest(f) != before


def test_classes_count_with_their_code(monkeypatch):
    machine = Machine(1.0)
    before = digest(machine.run)
    monkeypatch.setattr(Machine, "rate", 2.0)
    assert digest(machine.run) != before


def test_partials_count_with_their_arguments():
    f = maker(1.0)
    differ(f, functools.partial(f, 1), functools.partial(f, 2), functools.partial(f, x=1))
    once = functools.partial(f, power=3)
    assert digest(once) == digest(functools.partial(once))


def test_decorated_functions_count_as_what_they_hold():
    def wrapped(gain):
        @functools.wraps(np.linalg.inv)  # whose name and module it then has
        def inner(x):
            return gain * GAIN["k"] * x

        return inner

    differ(wrapped(1.0), wrapped(2.0), np.linalg.inv)


def test_arrays_count_by_type_shape_and_values():
    differ(*(np.array(x, t) for x, t in (([1, 2], "f8"), ([1, 2], "f4"), ([1, 2], "i8"), ([[1, 2]], "f8"))), [1.0, 2.0])
    differ(np.float32(0.5), 0.5, 1, True, "1", b"1", None, 1.0, -0.0, 0.0, (1,), [1], {1}, ca.DM(1), ca.DM(1, 1))
    assert digest(np.arange(6.0).reshape(2, 3).T) == digest(np.array([[0.0, 3], [1, 4], [2, 5]]))


def test_values_of_many_kinds():
    twin = collections.OrderedDict(a=1)
    differ(Config(), Config(2.0), Config(more=[1]), Kind.A, Kind.B, Path("a"), Path("b"), twin, {"a": 1})
    differ(np.sin, np.cos, np.random.default_rng(1), np.random.default_rng(2))
    assert digest({"x", "y", "z", 1}) == digest({1, "z", "y", "x"})
    ring = [1]
    ring.append(ring)
    differ(ring, [1, [1]])


def test_expressions_count_with_the_symbols_they_share():
    x, y = ca.SX.sym("x"), ca.SX.sym("x")
    differ([x + x], [x + y], [x * x])
    m, n = ca.MX.sym("m"), ca.MX.sym("m")
    differ({"a": m, "b": ca.sin(m)}, {"a": m, "b": ca.sin(n)})


def test_robots_and_trajectories():
    panda, other = od.robots.panda(), od.robots.panda()
    before = digest(panda)
    q = [panda.random_configuration(k) for k in range(2)]
    first, second = (od.plan_point_to_point(panda, *q, nodes=8) for _ in range(2))
    assert digest(panda) == before == digest(other)  # whatever it keeps by now
    kept = digest(first)
    assert digest(second) == kept
    assert first.info["seconds"] != second.info["seconds"]
    assert first.tau is not None
    assert digest(first) == kept
    second.pieces = np.array(second.pieces)
    second.pieces[0, 0, 0] += 1e-15
    assert digest(second) != kept
    differ(panda, od.robots.by_name("chain:7"))


def test_the_folder_of_a_robot_with_loops_does_not_count():
    bar = od.robots.four_bar()
    assert digest(dataclasses.replace(bar, folder="elsewhere")) == digest(bar)


def test_functions_of_casadi():
    x = ca.SX.sym("x")
    f, g = (ca.Function("f", [x], [ca.sin(x) * k]) for k in (1, 2))
    before = digest(f)
    f.jacobian()
    assert digest(f) == before != digest(g)


def test_compiled_functions_count_with_their_library(tmp_path):
    x = ca.MX.sym("x")
    library = tmp_path / "f.so"

    def made(factor):
        f = ca.Function("f", [x], [x * factor])
        code = ca.CodeGenerator("f.c")
        code.add(f)
        code.generate(f"{tmp_path}/")
        subprocess.run(["cc", "-shared", "-fPIC", tmp_path / "f.c", "-o", library, "-lm"], check=True)
        found = ca.external("f", str(library))
        return digest(found), digest(ca.Function("outer", [x], [found(x)]))

    try:
        subprocess.run(["cc", "--version"], check=True, capture_output=True)
    except OSError:
        pytest.skip("no C compiler")
    one, outer = made(2.0)
    library.unlink()
    other, outer_of_other = made(3.0)
    assert one != other
    assert outer != outer_of_other


class Told(ca.Callback):
    def __init__(self):
        super().__init__()
        self.construct("told", {})

    def eval(self, given):
        return [given[0] * 2]


def test_what_cannot_be_digested_is_named():
    m, told = ca.MX.sym("m"), Told()
    lock = threading.Lock()
    for value, words in (
        ({"a": [lock]}, r"thing, \['a'\], \[0\]: a _thread.lock"),
        (lambda x: lock, r"function <lambda>, its variable 'lock'"),
        ((x for x in "ab"), "generator"),
        (ca.Function("f", [m], [told(m)]), "CallbackInternal"),
        (ca.Opti(), "CasADi"),
        (eval("lambda x: __import__(x)"), "imports modules by a text"),
    ):
        with pytest.raises(ShapeError, match=words):
            digest(value, "thing")
    assert digest(told) == digest(Told())


@pytest.mark.slow
def test_digest_is_the_same_in_every_process_and_after_many_calls():
    text = "import sys, test_digest as t; [t.calls(1.0) for _ in range(int(sys.argv[1]))]; print(t.told_of_all())"
    folders, found = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])]), []
    for seed, calls in (("1", "0"), ("2", "99")):  # the interpreter rewrites code that runs often
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": folders}
        command = [sys.executable, "-c", text, calls]
        found.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert found[0] == found[1]
    assert len(found[0].strip()) == 48


def told_of_all():
    values = [
        od.robots.panda(), problem(), calls, by_name, Machine(1.0).run, maker(1.0), Config(), Kind.A,
        {"x", "y", ("z", 1)}, np.sin, np.random.default_rng(1), functools.partial(od.plan_point_to_point, nodes=3),
    ]  # fmt: skip
    return version() + digest([digest(x) for x in values])
