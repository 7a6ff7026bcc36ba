"""Solutions in files: what was saved comes back to the digit, and everything else is a FileError that says why."""

import io
import json
import os
import pickle
import zipfile

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.optimal_control import solution_file
from oc_dyn.optimal_control.integrators import gauss, rk4


def problem(nodes=6, *, gain=1.0, mass=None, upper=5.0, named="speed", goal=1.0, size=1, scale=None, phases=2, soft=0):
    ocp = od.Problem(nodes, (0.5, 2.0))
    x, v = ocp.state("x", size, scale=scale), ocp.state("v", size)
    u = ocp.control("u", size, lower=-upper, upper=upper)
    m = ocp.parameter("m") if mass is None else mass
    for number in range(phases):
        if number:
            ocp.phase(nodes, 1.0)
        ocp.rate(x, v)
        ocp.rate(v, gain * u / m - 0.1 * ca.sin(x))
        ocp.limit(-3 - soft, v, 3, name=named)
        ocp.minimize(integral=ca.sumsqr(u))
    ocp.start({x: 0, v: 0})
    ocp.goal({x: goal, v: 0})
    return ocp


@pytest.fixture(scope="module")
def solution():
    return problem().solve(method="collocation", parameters={"m": 1.3}, check="off")


@pytest.fixture
def saved(solution, tmp_path):
    path = tmp_path / "motion.npz"
    solution.save(path)
    return path


def same(a, b):
    """Whether two solutions answer alike, to the last digit."""
    assert a.status == b.status
    assert (a.success, a.iterations, a.objective) == (b.success, b.iterations, b.objective)
    for name in ("t", "x", "u", "unknowns", "parameters", "relative_lengths"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for mine, theirs in ((a.multipliers, b.multipliers), (a.bounds, b.bounds)):
        assert all(np.array_equal(x, y) for x, y in zip(mine, theirs, strict=True))
    assert a.durations == b.durations
    for name in a.named:
        assert np.array_equal(a[name], b[name])
    t = np.linspace(a.t[0], a.t[-1], 17)
    assert all(np.array_equal(a.sample(name, t), b.sample(name, t)) for name in a.named)
    assert str(a.check()) == str(b.check())


# -- what comes back ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_solution_comes_back(solution, saved):
    ocp = problem()
    for found in (ocp.load(saved), od.load_solution(str(saved), ocp)):
        same(solution, found)
        assert found.problem is ocp
        again = ocp.solve(method="collocation", parameters={"m": 1.3}, initial=found, check="off")
        assert again.iterations <= 2
        same(found, pickle.loads(pickle.dumps(found)))
    state = ocp.description.states[0].symbol
    assert np.array_equal(ocp.load(saved)[state * 2], 2 * solution["x"])


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "hermite_simpson", "radau", gauss(4, 1)], ids=str)
def test_methods_and_meshes_come_back(method, tmp_path):
    fine = problem(mass=1.0).with_mesh([4, 5], mesh=[[0, 0.1, 0.3, 0.7, 1], "uniform"])
    solution = fine.solve(method=method, check="off")
    path = tmp_path / "a.npz"
    solution.save(path)
    found = problem(mass=1.0).load(path)
    same(solution, found)
    assert found.method == solution.method
    assert found.problem.description.phases[0].shares == pytest.approx([0.1, 0.2, 0.4, 0.3])


@pytest.mark.slow
def test_chains_bodies_and_free_meshes_come_back(tmp_path):
    path = tmp_path / "a.npz"
    for basis, mesh in (("bernstein", "free"), ("taylor", "free"), ("b_spline", "uniform")):

        def chain(basis=basis, mesh=mesh):
            ocp = od.Problem(5, (0.5, 3.0), mesh=mesh)
            q, v, a = ocp.chain("q", 2, 2, bounds=[2.0, 5.0], basis=basis)
            ocp.start({q: 0, v: 0})
            ocp.goal({q: [1, 2], v: 0})
            ocp.minimize(integral=1.0 + 1e-3 * ca.sumsqr(a))
            return ocp

        solution = chain().solve(check="off")
        solution.save(path)
        same(solution, chain().load(path))


@pytest.mark.slow
def test_rounds_starts_and_bounds_that_changed_come_back(tmp_path):
    path, ocp = tmp_path / "a.npz", problem(mass=1.0, phases=1)
    ocp.bound("speed", -1.1, 1.2)
    solution = ocp.solve(check="off", starts=2, tolerance=1e-2)
    solution.save(path)
    found = problem(mass=1.0, phases=1).load(path)
    same(solution, found)
    assert found.limit_bounds["speed"][0].tolist() == [-1.1]
    assert found.rounds == solution.rounds
    assert str(found.rounds) == str(solution.rounds)
    assert found.local_optima == solution.local_optima


@pytest.mark.slow
def test_an_iterate_of_a_solver_that_failed_comes_back(tmp_path):
    path, ocp = tmp_path / "a.npz", problem(mass=1.0, goal=50.0)
    solution = ocp.solve(check="off", raises=False, solver_options={"max_iter": 3})
    solution.save(path)
    same(solution, problem(mass=1.0, goal=50.0).load(path))
    solution.unknowns = solution.unknowns * np.nan
    with pytest.raises(od.ShapeError, match="unknowns of the solution has numbers that are not finite"):
        solution.save(path)


@pytest.mark.slow
def test_a_function_of_ones_own_is_given_again(tmp_path):
    def mine(*arguments):
        return rk4(*arguments)

    path = tmp_path / "a.npz"
    solution = problem(mass=1.0).solve(method=mine, check="off")
    solution.save(path)
    with pytest.raises(od.FileError, match="function of the caller's own"):
        problem(mass=1.0).load(path)
    same(solution, problem(mass=1.0).load(path, method=mine))


def test_a_file_is_replaced_as_a_whole(solution, saved, monkeypatch):
    before = saved.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "no space")))
    with pytest.raises(OSError, match="no space"):
        solution.save(saved)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


# -- other problems -------------------------------------------------------------------------------------------------

OTHERS = {
    "other rates": ({"gain": 1.1}, "other equations: the equation of the method for v on interval 0 is"),
    "other bounds of a control": ({"upper": 6.0}, "control 'u': its size, bounds or scale"),
    "other limits": ({"soft": 1.0}, "limit 'speed' of phase 0 .*: its size, bounds or scale"),
    "another name of a limit": ({"named": "pace"}, "with limit 'speed' of phase 0"),
    "other sizes": ({"size": 2}, "state 'x': its size"),
    "another scale": ({"scale": 3.0}, "state 'x': its size, bounds or scale"),
    "a parameter less": ({"mass": 1.3}, "parameter 'm', which this one does not have"),
    "a phase less": ({"phases": 1}, "2 phases, this one has 1"),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("what", OTHERS)
def test_another_problem_is_told_by_name(what, saved):
    changed, words = OTHERS[what]
    with pytest.raises(od.FileError, match=words) as caught:
        problem(**changed).load(saved)
    assert saved.name in str(caught.value)


def test_other_costs_and_variables_are_told(saved, tmp_path):
    ocp = problem()
    ocp.minimize(integral=1.0)
    with pytest.raises(od.FileError, match="its objective is"):
        ocp.load(saved)
    ocp = problem()
    ocp.variable("extra")
    with pytest.raises(od.FileError, match="state 'extra', which that of the file does not have"):
        ocp.load(saved)
    with pytest.raises(od.ShapeError, match="expected a Problem"):
        od.load_solution(saved, "ocp")
    with pytest.raises(od.UnknownName, match="'.json'"):
        problem().load(tmp_path / "a.json")


# -- files that are none --------------------------------------------------------------------------------------------


def edited(path, change, *, digest=True):
    """The file with (metadata, arrays) changed in place, and a digest that fits unless told."""
    with np.load(path) as data:
        arrays = dict(data)
    meta = json.loads(str(arrays.pop("meta")))
    change(meta, arrays)
    if digest:
        meta["sha256"] = solution_file._digest(meta, {k: np.array(x, float) for k, x in arrays.items()})
    buffer = io.BytesIO()
    np.savez(buffer, meta=np.array(json.dumps(meta)), **arrays)
    path.write_bytes(buffer.getvalue())


def put(key, value):
    return lambda meta, arrays: (meta if key in meta else arrays).__setitem__(key, value)


def nan_at(key):
    def change(_, arrays):
        arrays[key] = arrays[key].copy()
        arrays[key].flat[1] = np.nan

    return change


ATTACKS = {  # with a digest that fits
    "no number": (nan_at("unknowns"), "'unknowns' has a number that is not finite"),
    "no bound": (nan_at("lower"), "'lower' has a number that is not finite"),
    "short": (lambda m, a: a.update(unknowns=a["unknowns"][:-1]), "unknowns has the shape"),
    "huge": (put("lam_g", np.zeros(10**5)), "lam_g has the shape"),
    "texts": (put("t", np.array(["a", "b"])), "'t' is not made of numbers"),
    "a table less": (lambda m, a: a.pop("rows"), "'rows' is missing"),
    "other times": (lambda m, a: a.update(t=a["t"] + 1), "its t are not those"),
    "other unknowns": (lambda m, a: a.update(unknowns=a["unknowns"] + 0.01), "other equations"),
    "another format": (put("format", "oc_dyn solution 99"), "metadata is not that"),
    "an entry more": (lambda m, a: m.update(code="import os"), "entry 'code'"),
    "an entry less": (lambda m, a: m.pop("status"), "status is missing"),
    "a status that is none": (put("status", 7), "status is missing, or no str"),
    "a method that is none": (put("method", {"name": "os.system"}), "method 'os.system' is not known"),
    "a family that is none": (put("method", {"family": "Step", "arguments": {}}), "method 'Step' is not known"),
    "a degree that is none": (
        put("method", {"family": "Collocation", "arguments": {"scheme": "radau", "degree": 99, "control_degree": 2}}),
        "method Collocation",
    ),
    "nodes without end": (put("phases", [{"nodes": 10**9, "shares": None}] * 2), "numbers of nodes that are none"),
    "shares that are none": (put("phases", [{"nodes": 2, "shares": [0.5, 0.7]}] * 2), "shares that are no lengths"),
    "phases that are none": (put("phases", [1, 2]), "phases is no list of objects"),
    "a limit of nothing": (
        lambda m, a: (m.update(limits=["none"]), a.update(limit_0=np.zeros((2, 1)))), "limit 'none' has 1 rows",
    ),
    "optima that are none": (put("local_optima", [[1, 2]]), "local_optima"),
    "rounds that are none": (put("rounds", [{"nodes": [1], "done": 3}]), "rounds"),
    "seconds that are none": (put("seconds", {"a": "b"}), "seconds"),
    "two objectives": (put("objective", np.zeros(2)), "'objective' has the shape"),
}  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_was_edited_is_refused(attack, saved):
    change, words = ATTACKS[attack]
    edited(saved, change, digest=attack != "texts")
    with pytest.raises(od.FileError, match=words) as caught:
        problem().load(saved)
    assert saved.name in str(caught.value)


def test_every_number_counts_in_the_digest(saved):
    data = saved.read_bytes()
    with np.load(saved) as arrays:
        names = [name for name in arrays.files if name != "meta"]
    for name in names:

        def nudge(meta, arrays, name=name):
            x = arrays[name].astype(float)
            finite = np.flatnonzero(np.isfinite(x.ravel()))
            if finite.size:
                x.flat[finite[0]] += 1e-9
            arrays[name] = x

        edited(saved, nudge, digest=False)
        with pytest.raises(od.FileError, match="not those that were written"):
            problem().load(saved)
        saved.write_bytes(data)
    edited(saved, put("iterations", 1), digest=False)
    with pytest.raises(od.FileError, match="not those that were written"):
        problem().load(saved)


@pytest.mark.slow
def test_what_is_cut_or_flipped_is_refused(saved):
    data = saved.read_bytes()
    rng = np.random.default_rng(3)
    for cut in (0, 1, 30, len(data) // 2, len(data) - 1):
        saved.write_bytes(data[:cut])
        with pytest.raises(od.FileError):
            problem().load(saved)
    for _ in range(15):
        damaged = bytearray(data)
        damaged[rng.integers(len(data))] ^= 1 << rng.integers(8)
        saved.write_bytes(bytes(damaged))
        try:
            found = problem().load(saved)
        except od.FileError:
            continue
        assert found.objective == problem().load(saved).objective  # in a part of the zip that says nothing


@pytest.mark.slow
def test_objects_bombs_and_strangers_are_refused(saved):
    ocp = problem()
    np.savez(saved, meta=np.array({"a": 1}, dtype=object))
    with pytest.raises(od.FileError, match="not an npz file of a solution"):
        ocp.load(saved)
    np.savez(saved, x=np.zeros(3))
    with pytest.raises(od.FileError, match="no metadata"):
        ocp.load(saved)
    np.savez(saved, meta=np.array("[" * 10**5))
    with pytest.raises(od.FileError, match="metadata cannot be read"):
        ocp.load(saved)
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("meta.npy", bytes(60_000_000))
    with pytest.raises(od.FileError, match="which no solution of its size does"):
        ocp.load(saved)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("x.npy", header.getvalue())
    with pytest.raises(od.FileError, match="says that it has the shape"):
        ocp.load(saved)
    with pytest.raises(FileNotFoundError):
        ocp.load(saved.with_name("none.npz"))
