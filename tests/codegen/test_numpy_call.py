"""od.numpy_call beyond its plain use: packed calls, threads, arrays of any memory and type."""

import copy
import pickle
import sys
import threading

import casadi as ca
import numpy as np
import pytest
from effort import function_calls
from samples import random_ports, relative, robot

import oc_dyn as od
from oc_dyn.codegen.build import find_compiler

try:
    find_compiler()
    HERE = True
except od.SolveError:
    HERE = False
needs_compiler = pytest.mark.skipif(not HERE, reason="needs a C compiler")
QUICK = {"flags": ("-O1",)}


def inverse(name="floating", **more):
    r = robot(name)
    f = od.function(r, "inverse_dynamics", **more)
    return f, random_ports(f, r)


def packed_ports(f, x):
    return np.concatenate([np.ravel(x[n], order="F") for n in f.name_in()])


@pytest.mark.parametrize("name", ["floating", "serial"])
def test_packed_calls_give_all_results_in_one_array(name):
    r = robot(name)
    for quantity, options in {
        "inverse_dynamics": {"external_wrenches": True, "order": 1},
        "inverse_dynamics_second_partials": {},
        "mass_matrix": {"order": 1},
        "kinetic_energy": {},
    }.items():
        f = od.function(r, quantity, **options)
        run, x = od.numpy_call(f), random_ports(f, r)
        found = f(**x)
        expected = np.concatenate([found[port].full().ravel(order="F") for port in f.name_out()])
        assert relative(run.packed(packed_ports(f, x)), expected) < 1e-15
        assert all(not y.any() for y in run.outputs.values())  # it has memory of its own
    s = ca.SX.sym("s", ca.Sparsity.lower(2))
    t = ca.SX.sym("t", ca.Sparsity.upper(2))
    g = od.numpy_call(ca.Function("g", [s, t], [2 * s, ca.sum2(s), t]))
    assert g.packed([1.0, 2.0, 9.0, 3.0, 1.0, 9.0, 2.0, 3.0]).tolist() == [2, 4, 0, 6, 1, 5, 1, 0, 2, 3]
    assert [y.tolist() for y in g([[1.0, 9.0], [2.0, 3.0]], [[1.0, 2.0], [9.0, 3.0]])][::2] == [
        [[2, 0], [4, 6]],
        [[1, 2], [0, 3]],
    ]


def test_packed_results_are_new_or_written_where_asked():
    f, x = inverse("serial")
    run, x = od.numpy_call(f), packed_ports(f, x)
    first = run.packed(x)
    kept = first.copy()
    assert run.packed(2 * x) is not first
    assert np.array_equal(first, kept)
    table = np.zeros((4, 3))
    assert run.packed(x, table[:, 1]).base is table
    assert np.array_equal(table[:, 1], kept)
    assert not table[:, ::2].any()
    frozen = np.zeros(4)
    frozen.flags.writeable = False
    for out, got in {
        "shape (3,)": np.zeros(3),
        "int64": np.zeros(4, int),
        r"\[0, 0": [0] * 4,
        r"\(4,\)": frozen,
    }.items():
        with pytest.raises(od.ShapeError, match=rf"out is .*{got}.*expected a writeable array of floats \(4,\)"):
            run.packed(x, out)
    with pytest.raises(od.ShapeError, match=r"x got shape \(11,\), expected \(12,\)"):
        run.packed(x[1:])
    with pytest.raises(od.ShapeError, match="x: got 'fast', expected numbers"):
        run.packed("fast")
    assert np.array_equal(run.packed(x), kept)


def test_numpy_call_takes_arrays_of_any_memory():
    f, x = inverse("serial")
    run, x = od.numpy_call(f), [v.ravel() for v in x.values()]
    expected = run(*x).copy()
    read_only = x[0].copy()
    read_only.flags.writeable = False
    for q in (
        np.repeat(x[0], 3)[::3],
        x[0][::-1].copy()[::-1],
        np.array([x[0], x[0]]).T[:, 1],
        x[0].astype(">f8"),
        x[0].astype(np.longdouble),
        x[0].astype(object),
        pickle.loads(pickle.dumps(x[0])),
        read_only,
        x[0][:, None],
        x[0].view(type("Sub", (np.ndarray,), {})),
    ):
        assert np.array_equal(run(q, x[1], x[2]), expected)
        assert np.array_equal(run.packed(np.concatenate([q.ravel().astype(q.dtype), x[1], x[2]])), expected)
    assert np.array_equal(run(run.inputs["q"], *x[1:]), expected)
    run.inputs["q"][:] = x[0]
    assert np.array_equal(run(run.inputs["q"][::-1], *x[1:]), run.copy()(x[0][::-1], *x[1:]))  # of its own memory
    for q in (np.array(["1"] * 4), np.ones(4, bool), np.ones(4, complex), np.ma.array(x[0]), np.array([None] * 4)):
        with pytest.raises(od.ShapeError, match="port q: got .*, expected (real )?numbers"):
            run(q, x[1], x[2])
    with pytest.raises(od.ShapeError, match=r"port q got shape \(\), expected \(4,\)"):
        run(np.float64(1.0), x[1], x[2])


@needs_compiler
@pytest.mark.parametrize("name", ["floating", "serial"])
def test_threads_that_share_a_packed_call(name):
    r = robot(name)
    f = od.compile(od.function(r, "forward_dynamics"), **QUICK)
    run, points = od.numpy_call(f).packed, [packed_ports(f, random_ports(f, r, seed)) for seed in range(8)]
    expected, wrong, rounds = [run(x) for x in points], [], 400
    start = threading.Barrier(4)

    def work(shift):
        start.wait()
        for k in range(rounds):
            i = (k + shift) % len(points)
            wrong.extend([i] * (not np.array_equal(run(points[i]), expected[i])))

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(2 * i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    finally:
        sys.setswitchinterval(before)
    assert not wrong


@needs_compiler
def test_a_packed_call_adds_three_calls_to_the_bare_buffer():
    """Its own, taking a memory and giving it back, and the copy of the result."""
    f, x = inverse("serial")
    g = od.compile(f, **QUICK)
    run, x = od.numpy_call(g).packed, packed_ports(g, x)
    run(x)  # builds the memory
    _, trigger = g.buffer()
    assert function_calls(lambda: run(x)) <= function_calls(trigger) + 5  # the lambda too


WAYS = [copy.copy, copy.deepcopy, lambda run: pickle.loads(pickle.dumps(run)), lambda run: run.copy()]


@pytest.mark.parametrize("way", WAYS)
def test_copies_have_memory_of_their_own(way):
    """copy.copy shared it: a call of one wrote over the results of the other."""
    f, x = inverse("serial")
    run = od.numpy_call(f)
    other = way(run)
    mine = run(**x)
    kept = mine.copy()
    assert not np.array_equal(other(*[np.zeros(4)] * 3), kept)
    assert np.array_equal(mine, kept)
    assert np.array_equal(other(**x), kept)
    assert np.array_equal(other.packed(packed_ports(f, x)), kept)


def test_copies_of_a_batch():
    f, x = inverse("serial")
    with pytest.warns(od.ModelWarning):
        run = od.batch(f, compiler="nothing")
    want = run(**x)
    for way in (copy.copy, copy.deepcopy):
        assert np.array_equal(way(run)(**x), want)
    with pytest.raises(od.ModelError, match=r"Batch of inverse_dynamics.*cannot be pickled"):
        pickle.dumps(run)
