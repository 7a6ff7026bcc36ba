"""od.compile, od.numpy_call and od.batch: the Functions' numbers, a cache that can be shared, and clear words."""

import concurrent.futures
import subprocess
import sys
import threading
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from effort import function_calls
from samples import random_ports, relative, robot

import oc_dyn as od
from oc_dyn.codegen.build import find_compiler, library
from oc_dyn.codegen.source import c_source
from oc_dyn.compiled_files import cache_folder

try:
    find_compiler()
    HERE = True
except od.SolveError:
    HERE = False
needs_compiler = pytest.mark.skipif(not HERE, reason="needs a C compiler")
QUICK = {"flags": ("-O1",)}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An own cache, with what file names may have in them."""
    folder = tmp_path / "cache of Jörg é"
    monkeypatch.setenv("OC_DYN_CACHE", str(folder))
    return folder


@pytest.fixture
def no_compiler(tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.delenv("CC", raising=False)


def inverse(name="floating", **more):
    r = robot(name)
    f = od.function(r, "inverse_dynamics", **more)
    return f, random_ports(f, r)


# -- compile --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@needs_compiler
def test_compiled_function_is_the_same(cache):
    f, x = inverse(order=1, external_wrenches=True)
    g = od.compile(f, **QUICK)
    assert isinstance(g, od.RobotFunction)
    assert g.is_a("External")
    assert (g.name(), g.name_in(), g.name_out()) == (f.name(), f.name_in(), f.name_out())
    for port, value in f(**x).items():
        assert relative(g(**x)[port], value) < 1e-13
    wrench = {"w_ext": {f._columns["w_ext"][0]: np.ones(6)}}
    assert relative(g(**{**x, **wrench})["tau"], f(**{**x, **wrench})["tau"]) < 1e-13
    with pytest.raises(od.ShapeError, match="port v got shape"):
        g(**{**x, "v": np.zeros(3)})
    assert len(list(cache.iterdir())) == 1
    od.compile(f, **QUICK)
    assert len(list(cache.iterdir())) == 1
    od.compile(f, flags="-O0")
    assert len(list(cache.iterdir())) == 2


@pytest.mark.slow
@needs_compiler
def test_functions_of_one_name_and_long_ones():
    fs = [inverse(name)[0] for name in ("serial", "branching")]
    fs.append(od.function(robot("floating"), "inverse_dynamics_second_partials"))
    gs = od.compile(fs, parts=500, **QUICK)
    assert [g.name() for g in gs] == [f.name() for f in fs]
    for f, g, name in zip(fs, gs, ("serial", "branching", "floating"), strict=True):
        x = random_ports(f, robot(name))
        for port, value in f(**x).items():
            assert g(**x)[port].sparsity() == value.sparsity()
            assert relative(g(**x)[port], value) < 1e-13


@pytest.mark.slow
@needs_compiler
def test_derivatives_are_found():
    f, x = inverse("serial")
    g = od.compile(f, derivatives=("jac", "adj", "jac_adj"), **QUICK)
    values = []
    for h in (f, g):
        q = ca.MX.sym("q", 4)
        tau = h(q, x["v"], x["dv"])
        J = ca.Function("J", [q], [ca.jacobian(tau, q), ca.hessian(ca.sumsqr(tau), q)[0]])
        values.append(J(x["q"]))
    for a, b in zip(*values, strict=True):
        assert relative(a, b) < 1e-12
    with pytest.raises(od.ShapeError, match="derivatives has 'grad'"):
        od.compile(f, derivatives="grad")
    with pytest.raises(od.ModelError, match="no derivative of inverse_dynamics_0"):
        od.compile(f, derivatives=od.function(robot("serial"), "inverse_dynamics_partials"))


@needs_compiler
def test_own_derivatives():
    x = ca.SX.sym("x", 2)
    f = ca.Function("f", [x], [ca.sin(x[0]) * x[1]])
    jac = ca.Function(
        "jac_f", [x, ca.SX.sym("o")], [ca.horzcat(2 * ca.cos(x[0]) * x[1], ca.sin(x[0]))]
    )  # twice the true
    g, y = od.compile(f, derivatives=jac, **QUICK), ca.MX.sym("y", 2)
    J = ca.Function("J", [y], [ca.jacobian(g(y), y)])
    assert relative(J([1, 2]), [[4 * np.cos(1), np.sin(1)]]) < 1e-15


@pytest.mark.slow
@needs_compiler
def test_processes_that_compile_the_same_at_once(cache):
    code = """
import casadi as ca, oc_dyn as od
x = ca.SX.sym("x", 3)
f = ca.Function("f", [x], [ca.sin(x) * x[0]])
print(od.compile(f)([1, 2, 3]))
"""
    command = [sys.executable, "-c", code]
    root = Path(od.__file__).parents[1]
    runs = [subprocess.Popen(command, cwd=root, stdout=-1, stderr=-1, text=True) for _ in range(3)]
    said = [run.communicate() for run in runs]
    assert {out for out, _ in said} == {"[0.841471, 0.909297, 0.14112]\n"}, said
    (kept,) = cache.iterdir()
    assert kept.name.startswith("oc_dyn_")


@pytest.mark.slow
@needs_compiler
def test_a_damaged_library_is_built_anew():
    f, x = inverse("serial")
    path = library({"oc_dyn.c": c_source([f], "oc_dyn")}, flags=("-O1",))
    path.unlink()
    path.write_bytes(b"no library")
    with pytest.warns(od.ModelWarning, match="not as it was written"):
        assert relative(od.compile(f, **QUICK)(**x)["tau"], f(**x)["tau"]) < 1e-13
    assert not path.exists() or path.stat().st_size > 1000


def test_without_a_compiler(no_compiler, monkeypatch):
    f, x = inverse("serial")
    with pytest.raises(od.SolveError, match=r"looked for \$CC \(not set\), cc, gcc, clang; .*compiler= or \$CC"):
        od.compile(f)
    monkeypatch.setenv("CC", "my_cc -m64")
    with pytest.raises(od.SolveError, match=r"looked for \$CC \(my_cc -m64\), cc"):
        od.compile(f)
    with pytest.raises(od.SolveError, match="no C compiler 'tinycc' was found"):
        od.compile(f, compiler="tinycc")
    with pytest.warns(od.ModelWarning, match="not compiled"):
        assert od.compile(f, fallback=True) is f
    with pytest.warns(od.ModelWarning, match="not compiled"):
        assert od.compile([f, f], fallback=True) == [f, f]
    with pytest.warns(od.ModelWarning, match="Function.map is used"):
        run = od.batch(f, threads=2)
    points = [np.repeat(v.reshape(-1, 1), 5, axis=1) for v in x.values()]
    assert relative(run(*points), np.repeat(f(**x)["tau"].full(), 5, axis=1)) < 1e-13
    with pytest.raises(od.SolveError, match="no C compiler"):
        od.batch(f, fallback=False)


@needs_compiler
def test_what_compile_refuses(tmp_path):
    f, _ = inverse("serial")
    with pytest.raises(od.SolveError, match="ended with status"):
        od.compile(f, flags="-std=nonsense")
    with pytest.raises(od.ModelError, match="is a Robot, expected a casadi.Function"):
        od.compile(robot("serial"))
    with pytest.raises(od.ModelError, match="compiled already"):
        od.compile(od.compile(f, **QUICK))
    (tmp_path / "file").write_text("")
    with pytest.raises(od.ModelError, match=r"cannot be written to .*cache= or \$OC_DYN_CACHE"):
        od.compile(f, cache=tmp_path / "file" / "cache")


def test_place_of_the_cache(tmp_path, monkeypatch):
    assert cache_folder(tmp_path / "own") == (tmp_path / "own").resolve()
    monkeypatch.delenv("OC_DYN_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    if sys.platform.startswith("linux"):
        assert cache_folder() == (tmp_path / "xdg" / "oc_dyn").resolve()
        monkeypatch.delenv("XDG_CACHE_HOME")
        assert cache_folder() == (tmp_path / ".cache" / "oc_dyn").resolve()


# -- numpy_call -----------------------------------------------------------------------------------------------


def dense(value, shape):
    return np.array(value).reshape(shape)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["floating", "serial"])
def test_numpy_call_gives_arrays(name):
    r = robot(name)
    for quantity in ("inverse_dynamics", "inverse_dynamics_second_partials", "frame_pose", "kinetic_energy"):
        f = od.function(r, quantity, **({"frame": "link2"} if quantity == "frame_pose" else {}))
        run, x = od.numpy_call(f), random_ports(f, r)
        arrays = [x[n].ravel() for n in f.name_in()]
        results = run(*arrays)
        results = results if isinstance(results, tuple) else (results,)
        for port, got in zip(f.name_out(), results, strict=True):
            expected = np.array(f(**x)[port])
            assert got.shape == (expected.shape if expected.shape[1] > 1 else (len(expected),))
            assert relative(got.ravel(), expected.ravel()) < 1e-15


def test_numpy_call_takes_columns_lists_names_and_matrices():
    f, x = inverse(external_wrenches=True)
    run, expected = od.numpy_call(f), f(**x)["tau"].full().ravel()
    x = {n: v if n == "w_ext" else v.ravel() for n, v in x.items()}
    for given in (x, {n: v.tolist() for n, v in x.items()}, {n: v if v.ndim > 1 else v[:, None] for n, v in x.items()}):
        assert relative(run(**given), expected) < 1e-14
        run.outputs["tau"][:] = 0
    for port, array in run.inputs.items():
        array[...] = x[port]
    assert relative(run.evaluate(), expected) < 1e-14
    first = run(**x)
    other = run.copy()
    assert other(**x) is not first
    assert run(**x) is first
    s = ca.SX.sym("s", ca.Sparsity.lower(2))
    g = od.numpy_call(ca.Function("g", [s], [2 * s, ca.sum2(s)]))
    twice, rows = g(np.array([[1.0, 9.0], [2.0, 3.0]]))  # what is above the diagonal does not count
    assert twice.tolist() == [[2, 0], [4, 6]]
    assert rows.tolist() == [1, 5]


def test_numpy_call_says_what_is_wrong():
    f, x = inverse("serial")
    run, x = od.numpy_call(f), [v.ravel() for v in x.values()]
    with pytest.raises(od.ShapeError, match=r"got 2 arrays, expected q\(4,\), v\(4,\), dv\(4,\)"):
        run(*x[:2])
    with pytest.raises(od.ShapeError, match=r"port v got shape \(3,\), expected \(4,\)"):
        run(x[0], x[1][:3], x[2])
    with pytest.raises(od.ShapeError, match=r"port v got shape \(1, 4\)"):
        run(x[0], x[1][None], x[2])
    with pytest.raises(od.ShapeError, match="port dv: got 'fast', expected numbers"):
        run(x[0], x[1], "fast")
    with pytest.raises(od.ShapeError, match="got q, v, expected"):
        run(q=x[0], v=x[1])
    with pytest.raises(od.ShapeError, match="not both"):
        run(x[0], v=x[1])
    with pytest.raises(od.ModelError, match="got int"):
        od.numpy_call(3)


@needs_compiler
def test_numpy_call_adds_three_calls_to_the_bare_buffer():
    """Its own and two of len(); a call of the Function itself takes dozens."""
    f, x = inverse("serial")
    g = od.compile(f, **QUICK)
    run, arrays = od.numpy_call(g), [v.ravel() for v in x.values()]
    _, trigger = g.buffer()
    ways = lambda: run(*arrays), trigger, lambda: g(*arrays)
    through, bare, by_casadi = map(function_calls, ways)
    assert through <= bare + 4  # the lambda too
    assert by_casadi > 4 * through


# -- batch ----------------------------------------------------------------------------------------------------


def side_by_side(f, r, n):
    points = [random_ports(f, r, seed) for seed in range(n)]
    return {port: np.hstack([p[port].reshape(f.size_in(port)) for p in points]) for port in f.name_in()}, points


@pytest.mark.sample(1)
@needs_compiler
@pytest.mark.parametrize("threads", [1, 3])
def test_batch_equals_single_calls(threads):
    r = robot("floating")
    for quantity, more in (("inverse_dynamics", {"external_wrenches": True}), ("inverse_dynamics_second_partials", {})):
        f = od.function(r, quantity, **more)
        run = od.batch(f, threads=threads, **QUICK)
        x, points = side_by_side(f, r, 100)
        results = run(**x)
        results = results if isinstance(results, tuple) else (results,)
        for port, got in zip(f.name_out(), results, strict=True):
            expected = np.hstack([np.array(f(**p)[port]) for p in points])
            assert got.shape == expected.shape
            assert relative(got, expected) < 1e-13


@needs_compiler
def test_batch_takes_one_point_for_all():
    f, x = inverse("serial")
    pool = concurrent.futures.ThreadPoolExecutor(2)
    run = od.batch(f, executor=pool, **QUICK)
    q, v, dv = (value.ravel() for value in x.values())
    many = np.random.default_rng(0).normal(size=(4, 70))
    expected = f.map(70)(np.tile(q[:, None], 70), many, np.tile(dv[:, None], 70)).full()
    for given in ((q, many, dv), (q[:, None], np.asfortranarray(many), dv.tolist())):
        assert relative(run(*given), expected) < 1e-13
    assert run(q, v, dv).shape == (4, 1)
    assert run(q, np.zeros((4, 0)), dv).shape == (4, 0)
    threads = [threading.Thread(target=lambda k=k: run(q, many * k, dv)) for k in range(4)]
    for thread in threads:
        thread.start()
    assert relative(run(q, many, dv), expected) < 1e-13
    for thread in threads:
        thread.join()
    pool.shutdown()


@needs_compiler
def test_batch_says_what_is_wrong():
    f, x = inverse("serial")
    run = od.batch(f, **QUICK)
    with pytest.raises(od.ShapeError, match=r"port v got shape \(3, 5\), expected \(4, N\)"):
        run(np.zeros(4), np.zeros((3, 5)), np.zeros(4))
    with pytest.raises(od.ShapeError, match="different numbers of points: {'q': 1, 'v': 5, 'dv': 6}"):
        run(np.zeros(4), np.zeros((4, 5)), np.zeros((4, 6)))
    with pytest.raises(od.ShapeError, match="got 1 arrays"):
        run(np.zeros(4))
    with pytest.raises(od.ShapeError, match="port dv: .*numbers"):
        run(np.zeros(4), np.zeros(4), "fast")
    for threads in (0, 1.5, True):
        with pytest.raises(od.ShapeError, match="threads is"):
            od.batch(f, threads=threads)
    with pytest.raises(od.ModelError, match="executor is a int"):
        od.batch(f, executor=3)
