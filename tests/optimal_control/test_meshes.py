"""Meshes of unequal intervals: known optima, what reads the lengths of intervals, refusals."""

import pickle

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import CheckWarning
from oc_dyn.study.suite import listed, load

OPTIMA = {7: 6.0, 10: 1.67309397841219, 11: 0.920531441473003, 17: np.pi / 2}
NODES = {7: 8, 10: 240, 11: 12, 17: 80}  # of a phase


def breakpoints(nodes, seed=0):
    """Unequal intervals, the longest three times the shortest."""
    lengths = np.random.default_rng(seed).uniform(0.5, 1.5, nodes)
    return np.concatenate([[0.0], np.cumsum(lengths)[:-1] / lengths.sum(), [1.0]])


def graded(nodes, power=2.0):
    return np.linspace(0, 1, nodes + 1) ** power


def on_other_meshes(ocp):
    """The problem on a mesh of unequal intervals in every phase."""
    return ocp.with_mesh(mesh=[breakpoints(p.nodes, k) for k, p in enumerate(ocp.description.phases)])


def tracked(mesh, nodes=6, duration=2.0):
    """x' = u, of which x follows t."""
    ocp = od.Problem(nodes, duration, mesh=mesh)
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u)
    ocp.minimize(integral=u**2)
    ocp.start({x: 0})
    return ocp, x, u


@pytest.mark.sample(4)
@pytest.mark.parametrize("number", OPTIMA)
@pytest.mark.parametrize(
    "method, asked", [("hermite_simpson", 1e-6), ("radau", 1e-6), ("rk4", 0.03), ("collocation", 0.03)]
)
def test_known_optima(number, method, asked):
    ocp = on_other_meshes(load(listed()[number]).problem(NODES[number]))
    found = ocp.solve(method=method, check="raise")
    steps = np.diff(found.t)
    assert found.objective == pytest.approx(OPTIMA[number], rel=asked)
    assert steps.max() > 2 * steps.min()


@pytest.mark.sample(2)
@pytest.mark.parametrize("solver", ["ipopt", "fatrop", "sqpmethod"])
def test_every_solver_takes_them(solver):
    ocp = on_other_meshes(load(listed()[11]).problem(12))
    assert ocp.solve(method="hermite_simpson", solver=solver).objective == pytest.approx(OPTIMA[11], rel=1e-6)


def test_a_graded_mesh_is_better_where_all_happens_at_the_ends():
    """Linear hypersensitive problem over 100 s: 40 intervals by hand against 40 equal ones."""
    parts = [12 * graded(16) / 100, [0.5], 1 - 12 * graded(16)[::-1] / 100]
    mesh = np.concatenate(parts)
    errors = []
    for at in (np.linspace(0, 1, len(mesh)), mesh):
        ocp = od.Problem(len(mesh) - 1, 100.0, mesh=at)
        x, u = ocp.state("x", guess=0.1), ocp.control("u")
        ocp.rate(x, -x + u)
        ocp.start({x: 1.5})
        ocp.goal({x: 1})
        ocp.minimize(integral=(x**2 + u**2) / 2)
        errors.append(abs(ocp.solve(method="hermite_simpson", check="off").objective - 1.67309703885628))
    assert errors[1] < 1e-4
    assert errors[1] < errors[0] / 100


def test_stages_are_those_of_the_uniform_mesh():
    ocp = load(listed()[11]).problem(12)
    made = [x.transcribed("hermite_simpson") for x in (ocp, on_other_meshes(ocp), ocp.with_mesh([5, 7]))]
    first, *others = [[g.kind for g in x.assembly.groups] for x in made]
    for kinds in others:
        assert all(x is y for x, y in zip(first, kinds, strict=True))


def test_an_even_mesh_is_the_uniform_one():
    ocp, *_ = tracked(np.linspace(0, 1, 7))
    assert ocp.description.phases[0].shares is None
    ocp.chain("y", 1, 2, basis="bernstein")


# -- what reads lengths of intervals ------------------------------------------------------------------------


def test_times_of_the_nodes():
    ocp, x, u = tracked(graded(6), duration=2.0)
    ocp.phase(3, 1.0, mesh=[0, 0.5, 0.6, 1])
    ocp.rate(x, u)
    ocp.minimize(integral=u**2)
    ocp.goal({x: 1})
    found = ocp.solve()
    expected = [*(2 * graded(6)), 2.5, 2.6, 3.0]
    assert found.t == pytest.approx(np.array(expected), abs=1e-14)
    assert found[x][:, 0] == pytest.approx(found.t / 3, abs=1e-8)


def test_a_free_duration():
    """Least time over 1 m in least time: 2 s, whatever the mesh, as the switch is at a node."""
    ocp = od.Problem(5, (0.5, 10.0), mesh=[0, 0.1, 0.5, 0.6, 0.65, 1])
    x, v, u = ocp.state("x", guess=lambda s: s), ocp.state("v"), ocp.control("u", lower=-1, upper=1)
    ocp.rate(x, v)
    ocp.rate(v, u)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 1, v: 0})
    ocp.minimize(terminal=ocp.duration)
    found = ocp.solve()
    assert found.duration == pytest.approx(2.0, abs=1e-6)
    assert found.t == pytest.approx(found.duration * np.array([0, 0.1, 0.5, 0.6, 0.65, 1]))
    assert found.problem.with_mesh(mesh=[0, 0.5, 1]).solve(initial=found).duration == pytest.approx(2.0, abs=1e-6)


def test_values_at_a_node_by_fraction_and_time():
    for where in ({"fraction": 0.25}, {"time": 0.5}):
        ocp, x, _ = tracked(graded(6), duration=2.0)  # nodes at 0, 1/36, 4/36, 9/36, ...
        ocp.at({x: 1}, **where)
        found = ocp.solve()
        assert found[x][3] == pytest.approx(1)
        assert found[x][4:] == pytest.approx(1)  # no reason to move on
        assert found.objective == pytest.approx(1 / 0.5)
        assert found.check().ok()
    with pytest.raises(od.ShapeError, match=r"0\.3 is no node.*nearest fractions are 0\.25 and 0\.444444"):
        ocp.at({x: 1}, fraction=0.3)
    with pytest.raises(od.ShapeError, match=r"0\.25 is no node"):
        ocp.with_mesh(6, mesh="uniform")
    assert ocp.with_mesh(8).solve()[x][2] == pytest.approx(1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["rk4", "collocation", "radau", "hermite_simpson"])
def test_guesses_are_functions_of_the_share_of_the_time(method):
    """What is guessed is the solution: no iteration is left to do."""
    ocp, x, u = tracked(graded(6), duration=2.0)
    ocp.goal({x: 2})
    ocp.guess({x: lambda share: 2 * share, u: 1.0})
    for given in (ocp, pickle.loads(pickle.dumps(ocp)), ocp.with_mesh(9), ocp.with_mesh(mesh=breakpoints(9))):
        made = given.transcribed(method)
        states, _, _ = made.values(made.guess(None))
        assert states[:, 0] == pytest.approx(2 * given.description.phases[0].breakpoints, abs=1e-14)
        assert given.solve(method=method).iterations == 0


def test_guesses_that_are_tables_have_a_row_for_every_node():
    ocp, x, u = tracked(graded(6), duration=2.0)
    ocp.guess({x: (2 * graded(6))[:, None]})
    for given in (ocp, ocp.with_mesh(9), ocp.with_mesh(mesh=breakpoints(9)), pickle.loads(pickle.dumps(ocp))):
        made = given.transcribed("rk4")
        states, _, _ = made.values(made.guess(None))
        assert states[:, 0] == pytest.approx(2 * given.description.phases[0].breakpoints, abs=1e-14)


def test_guesses_keep_their_time_where_phases_get_other_numbers_of_intervals():
    ocp, x, u = tracked("uniform", nodes=6, duration=1.0)
    ocp.phase(2, 3.0)
    ocp.rate(x, u)
    time = ocp.time
    ocp.guess({x: lambda share: [share]})  # 0.75 after the first phase
    other = ocp.with_mesh([3, 9], mesh=[None, graded(9)])
    made = other.transcribed("rk4")
    states, _, _ = made.values(made.guess(None))
    assert states[3, 0] == pytest.approx(0.75)
    assert states[:, 1] == pytest.approx(np.concatenate([np.linspace(0, 1, 4), 1 + 3 * graded(9)[1:]]), abs=1e-14)
    assert other.solve()[time][:, 0] == pytest.approx(states[:, 1], abs=1e-12)


@pytest.mark.sample(2)
@pytest.mark.parametrize("points, power", [(0, 1), (1, 3), (3, 7)])
def test_sums_at_points_are_exact_for_polynomials(points, power):
    """The end of an interval counts for itself: it is not as long as the next."""
    for mesh in (graded(7), breakpoints(7)):
        ocp = od.Problem(7, 2.0, mesh=mesh)
        u = ocp.control("u")
        ocp.minimize(integral=ocp.time**power, points=points)
        ocp.minimize(integral=u**2)
        assert ocp.solve().objective == pytest.approx(2.0 ** (power + 1) / (power + 1), rel=1e-12)


def test_sums_at_points_are_built_anew_from_a_uniform_mesh():
    ocp = od.Problem(4, 2.0)
    u = ocp.control("u")
    ocp.minimize(integral=ocp.time, points=0)
    ocp.minimize(integral=u**2)
    uniform = ocp.solve(check="off").objective  # every node but the last counts for an interval
    assert uniform == pytest.approx(1.5)
    assert ocp.with_mesh(mesh=graded(5)).solve(check="off").objective == pytest.approx(2.0)
    assert ocp.solve(check="off").objective == uniform


def test_a_mean_counts_intervals_with_their_shares():
    ocp = od.Problem(4, 2.0, mesh=graded(4))
    u = ocp.control("u")
    ocp.minimize(mean=ocp.time)
    ocp.minimize(integral=u**2)
    found = ocp.solve(check="off")
    assert found.objective == pytest.approx((found.t[:-1] * np.diff(found.t)).sum() / 2)


def test_taylor_chains_are_stepped_by_their_own_lengths():
    objectives = []
    for basis in ("taylor", "states"):
        ocp = od.Problem(9, 1.5, mesh=breakpoints(9))
        if basis == "taylor":
            x, v, u = ocp.chain("x", 1, 2)
        else:
            x, v, u = ocp.state("x"), ocp.state("v"), ocp.control("u")
            ocp.rate(x, v)
            ocp.rate(v, u)
        ocp.start({x: 0, v: 0})
        ocp.goal({x: 1, v: 0})
        ocp.minimize(integral=u**2)
        found = ocp.solve()
        assert found.check(1e-8).ok()
        assert found[ocp.step][:-1, 0] == pytest.approx(np.diff(found.t), abs=1e-14)
        objectives.append(found.objective)
    assert objectives[0] == pytest.approx(objectives[1], rel=1e-10)


def test_a_trajectory_of_a_chain_joins_its_pieces():
    ocp = od.Problem(9, 1.5, mesh=breakpoints(9))
    chain = ocp.chain("x", 1, 3)
    ocp.start(dict.fromkeys(chain[:-1], 0))
    ocp.goal({chain[0]: 1, chain[1]: 0, chain[2]: 0})
    ocp.minimize(integral=chain[-1] ** 2)
    motion = ocp.solve().trajectory(chain)
    assert max(motion.jumps().values()) < 1e-8
    assert motion.t == pytest.approx(1.5 * breakpoints(9))


def test_contact_bodies_step_by_their_own_lengths():
    builder = od.RobotBuilder("ball")
    builder.add_link("ground")
    builder.add_link("ball", mass=2.0, com=[0, 0, 0], inertia=np.diag([0.1, 0.1, 0.1]))
    builder.add_joint("base", "free", "ground", "ball")
    robot = builder.build()
    ocp = od.Problem(5, 0.5, mesh=graded(5))
    body = ocp.contact_body(robot)
    ocp.limit(0, body.tau, 0)
    ocp.start({body.q: robot.neutral(), body.v: [0, 0, 1, 0.5, 0, 3]})
    found = ocp.solve(check="raise")
    height = [i for i in range(7) if abs(found[body.q][-1, i] - (3 * 0.5 - 9.81 * 0.5**2 / 2)) < 1e-6]
    assert len(height) == 1
    t = found.t
    assert found[body.q][:, height[0]] == pytest.approx(3 * t - 9.81 * t**2 / 2, abs=1e-7)


def test_varying_parameters_have_a_row_for_every_node():
    ocp, x, u = tracked(graded(6))
    wanted = ocp.varying("wanted")
    ocp.minimize(integral=100 * (u - wanted) ** 2)
    values = np.arange(7.0)
    found = ocp.solve(parameters={"wanted": values})
    assert found[u][:, 0] == pytest.approx(values[:-1] * 100 / 101)


def test_several_starts():
    ocp, x, u = tracked(graded(6))
    ocp.goal({x: 1})
    ocp.minimize(integral=ca.sin(5 * x))
    a, b = (ocp.solve(starts=3, seed=1, check="off") for _ in range(2))
    assert a.local_optima == b.local_optima
    assert a.objective <= min(x[0] for x in a.local_optima)


def test_solutions_are_guesses_from_mesh_to_mesh():
    ocp, x, u = tracked("uniform", nodes=24)
    ocp.rate(x, u - x**3)
    ocp.start({x: 1})
    ocp.goal({x: 2})
    first = ocp.solve(method="hermite_simpson")
    other = ocp.with_mesh(mesh=breakpoints(12))
    cold, warm = (other.solve(method="hermite_simpson", initial=x) for x in (None, first))
    made = other.transcribed("hermite_simpson")
    states, _, _ = made.values(made.guess(first))
    assert states[:, 0] == pytest.approx(first.sample(x, 2 * breakpoints(12))[:, 0], abs=1e-12)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-9)
    assert warm.iterations < cold.iterations


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", ["rk4", "collocation", "radau", "trapezoidal", "hermite_simpson"])
def test_problems_and_solutions_are_sent(method):
    ocp, x, u = tracked(graded(6))
    ocp.phase(3, 1.0, mesh=breakpoints(3))
    ocp.rate(x, u * x)
    ocp.minimize(integral=u**2)
    ocp.goal({x: 1.5})
    ocp.guess({x: 1.0})
    found = ocp.solve(method=method, check="off")
    other = pickle.loads(pickle.dumps(found))
    assert np.array_equal(other.t, found.t)
    assert other.check().rows == found.check().rows
    again = other.problem.solve(method=method, check="off")
    assert again.objective == pytest.approx(found.objective, rel=1e-12)
    assert np.array_equal(again.t, found.t)


def test_a_controller_does_not_move_its_memory():
    ocp = od.Problem(6, 1.0, mesh=graded(6))
    x, v, u = ocp.chain("x", 1, 2)
    ocp.start({x: ocp.parameter("now"), v: 0})
    ocp.minimize(squares=ca.vertcat(x, 0.1 * u))
    control = od.mpc(ocp)
    found = control.step({"now": 0.5})
    assert found["d2x"] == pytest.approx(ocp.solve(parameters={"now": 0.5}, check="off")[u][0], rel=1e-6)
    with pytest.raises(od.ShapeError, match="shift is for intervals of equal length"):
        od.mpc(ocp, shift=1)


# -- refusals -----------------------------------------------------------------------------------------------


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "mesh, words",
    [
        ([0, 0.5, 1], "3 breakpoints, expected nodes . 1 = 5"),
        ([0, 0.5, 0.4, 0.8, 1], "increase.*0.5 and 0.4"),
        ([0, 0.5, 0.5, 0.8, 1], "increase"),
        ([0.1, 0.2, 0.3, 0.4, 1], "from 0 to 1"),
        ([0, 0.2, 0.3, 0.4, 2], "from 0 to 1"),
        ([0, 0.2, np.nan, 0.4, 1], "from 0 to 1"),
        ([0, 1e-300, 0.3, 0.4, 1], "by 1e-12 at least"),
    ],
)
def test_breakpoints_that_are_none(mesh, words):
    ocp = od.Problem(4, 1.0)
    for call in (
        lambda: od.Problem(4, 1.0, mesh=mesh),
        lambda: od.Problem(2, 1.0).phase(4, 1.0, mesh=mesh),
        lambda: ocp.with_mesh(4, mesh=mesh),
    ):
        with pytest.raises(od.ShapeError, match=words):
            call()


def test_words_that_are_no_mesh():
    for call in (
        lambda: od.Problem(4, 1.0, mesh="even"),
        lambda: od.Problem(4, 1.0, mesh=None),
        lambda: od.Problem(4, 1.0).phase(4, 1.0, mesh="free"),
        lambda: od.Problem(4, 1.0).with_mesh(4, mesh="even"),
    ):
        with pytest.raises(od.UnknownName, match="mesh"):
            call()


def test_several_phases_have_a_mesh_each():
    ocp = load(listed()[11]).problem(12)
    for given in ((5,), ([5],), ([5, 6, 7],)):
        with pytest.raises(od.OrderError, match="2 phases; give a list, one each"):
            ocp.with_mesh(*given)
    with pytest.raises(od.OrderError, match="2 phases"):
        ocp.with_mesh(mesh=graded(5))
    with pytest.raises(od.OrderError, match="durations of several phases"):
        ocp.with_mesh([5, 5], 2.0)
    assert [p.nodes for p in ocp.with_mesh([None, 5]).description.phases] == [12, 5]
    assert [p.nodes for p in ocp.with_mesh(mesh=[None, graded(5)]).description.phases] == [12, 5]
    with pytest.raises(od.ShapeError, match="nodes"):
        ocp.with_mesh([5, 0])


@pytest.mark.sample(2)
@pytest.mark.parametrize("basis", ["b_spline", "bernstein"])
def test_chains_on_equal_times_are_refused(basis):
    with pytest.raises(od.OrderError, match=r"equal length|equal times"):
        od.Problem(4, 1.0, mesh=graded(4)).chain("q", 1, 3, basis=basis)
    ocp = od.Problem(4, 1.0)
    ocp.chain("q", 1, 3, basis=basis)
    with pytest.raises(od.OrderError, match="intervals of equal length"):
        ocp.with_mesh(mesh=graded(4))


def test_stages_that_are_reused_have_equal_intervals():
    with pytest.raises(od.OrderError, match="reusable"):
        od.Problem(4, 1.0, mesh=graded(4), reusable=True)
    with pytest.raises(od.OrderError, match="reusable"):
        od.Problem(4, 1.0, reusable=True).with_mesh(mesh=graded(4))
    with pytest.raises(od.OrderError, match="free mesh"):
        od.Problem(4, 1.0, mesh="free").with_mesh(mesh=graded(4))


def test_a_sum_at_points_reads_ends_of_unequal_intervals():
    """With points=0 a state with a rate is read at nodes: at the end of an interval it is not known to the sum."""
    ocp, x, u = tracked(graded(6))
    ocp.minimize(integral=x**2, points=0)
    with pytest.raises(od.OrderError, match="points=0"):
        ocp.solve()
    assert ocp.with_mesh(6, mesh="uniform").solve(check="off").success
    with pytest.raises(od.OrderError, match="points=0"):
        ocp.with_mesh(6, mesh="uniform").with_mesh(mesh=graded(6)).solve()


def test_one_interval_and_many():
    ocp, x, u = tracked([0, 1], nodes=1)
    ocp.goal({x: 1})
    assert ocp.solve().objective == pytest.approx(0.5)
    lengths = np.geomspace(1e-6, 1, 40)
    mesh = np.concatenate([[0.0], np.cumsum(lengths)[:-1] / lengths.sum(), [1.0]])
    found = ocp.with_mesh(mesh=mesh).solve()
    assert found.objective == pytest.approx(0.5, rel=1e-7)
    assert found.t == pytest.approx(2 * mesh)


def test_a_coarse_interval_is_told_by_the_check():
    ocp = od.Problem(4, 10.0, mesh=[0, 0.01, 0.02, 0.03, 1])
    x, u = ocp.state("x"), ocp.control("u")
    ocp.rate(x, u - x * ca.fabs(x) * 5)
    ocp.start({x: 3})
    ocp.minimize(integral=u**2)
    with pytest.warns(CheckWarning, match="defect"):
        found = ocp.solve()
    worst = next(row for row in found.check().rows if row.what == "defect")
    assert worst.time == pytest.approx(10.0)
