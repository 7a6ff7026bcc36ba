"""A Problem and its Solutions sent to another process: the same optimum, and names in place of symbols."""

import pickle
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.digest import digest
from oc_dyn.errors import UnknownName


def with_parameters():
    """Parameters, one that varies along the nodes, a limit of both, a guess that is a function of no module."""
    ocp = od.Problem(10, 1.0)
    m, wind = ocp.parameter("m"), ocp.varying("wind")
    x = ocp.state("x", 2, guess=lambda share: [share, 1.0])
    u = ocp.control("u", lower=-30, upper=30)
    ocp.rate(x, ca.vertcat(x[1], (u + wind) / m))
    ocp.limit(-2, x[1] + 0.01 * u, 1.7, name="speed")
    ocp.start({x: [0, 0]})
    ocp.goal({x: [1, 0]})
    ocp.minimize(squares=u, terminal=0.1 * x[0] ** 2)
    return ocp, {"parameters": {"m": 2.0, "wind": np.linspace(0, 1, 11)[:, None]}, "method": "collocation"}


def with_phases():
    """Two phases of free durations, a join between them, bounds on an end."""
    ocp = od.Problem(8, (0.2, 3.0))
    x, v = ocp.state("x", lower=-1, upper=4), ocp.state("v")
    u = ocp.control("u", lower=-3, upper=3)
    for phase in range(2):
        if phase:
            ocp.join(v, 0.5 * v)
            ocp.phase(6, (0.1, 2.0))
        ocp.rate(x, v)
        ocp.rate(v, u - 0.2 * v)
        ocp.minimize(integral=1 + 0.01 * u**2)
    ocp.start({x: 0, v: 0})
    ocp.goal({x: 2, v: (-0.1, 0.1)})
    return ocp, {"method": "hermite_simpson"}


def with_a_chain(basis):
    ocp = od.Problem(12, (0.5, 4.0))
    q, dq, ddq, jerk = ocp.chain("q", 2, 3, bounds=(2.0, 10.0, None), basis=basis)
    ocp.limit(-100, jerk, 100)
    ocp.start({q: [0, 0], dq: [0, 0], ddq: [0, 0]})
    ocp.goal({q: [1, 0.5], dq: [0, 0], **({ddq: [0, 0]} if basis == "taylor" else {})})
    ocp.minimize(terminal=ocp.duration, integral=1e-5 * ca.sumsqr(jerk))
    return ocp, {}


def with_bernstein(mesh):
    more = {"mesh": mesh, "reusable": True, "nominal": 1.0 if mesh == "free" else None}
    ocp = od.Problem(8, (0.1, 4.0), **more)
    q = ocp.chain("q", 2, 4, bounds=(2.0, 10.0, 100.0, None), basis="bernstein")
    rest = {x: [0, 0] for x in q[1:3]}
    ocp.start({q[0]: [0, 0], **rest})
    ocp.goal({q[0]: [1, 0.5], **rest})
    ocp.minimize(integral=1.0)
    return ocp, {}


def with_a_robot():
    robot = od.robots.planar_2r()
    ocp = od.Problem(8, 1.0)
    q, v, _, tau = ocp.rigid_body(robot)
    ocp.limit(-300, tau, 300)
    ocp.start({q: [0, 0], v: 0})
    ocp.goal({q: [0.6, -0.4], v: 0})
    ocp.minimize(integral=ca.sumsqr(tau))
    return ocp, {}


def with_contacts():
    robot = od.robots.quadruped()
    feet = ("LF_foot", "RF_foot", "LH_foot", "RH_foot")
    at = robot.neutral()
    at[7:] = np.ravel([(0, hip, -2 * hip) for hip in (0.75, 0.75, -0.75, -0.75)])
    ocp, weight = od.Problem(3, 0.2), 9.81 * robot.total_mass
    guess = [at, 0, 0, np.tile([0, 0, weight / 4], 4)]
    body = ocp.contact_body(robot, feet, guess=guess, scale=(1, 5, 50, weight / 4))
    ocp.limit(0, body.tau[:6] / 10, 0)
    ocp.limit(0, body.pyramid(0.7) / weight, np.inf)
    ocp.limit(0, body.next()[3], 0)
    ocp.minimize(squares=ca.vertcat(body.tau[6:] / 150, 0.01 * body.dv))
    ocp.start({body.q: at, body.v: 0})
    ocp.goal({body.q[6]: at[6] - 0.02})
    return ocp, {"method": "euler"}


KINDS = {
    "parameters": with_parameters,
    "phases": with_phases,
    "taylor": lambda: with_a_chain("taylor"),
    "b_spline": lambda: with_a_chain("b_spline"),
    "bernstein": lambda: with_bernstein("uniform"),
    "free mesh": lambda: with_bernstein("free"),
    "robot": with_a_robot,
    "contacts": with_contacts,
}


def sent(x):
    return pickle.loads(pickle.dumps(x))


def instructions(ocp, method="rk4", **_):
    kinds = [g.kind for g in ocp.transcribed(method).assembly.groups]
    return [f.n_instructions() for k in kinds for f in (k.value, k.jacobian, k.cost, k.gradient, k.hessian)]


@pytest.mark.sample("free mesh", "parameters")
@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_that_was_sent_is_the_same(kind):
    ocp, how = KINDS[kind]()
    there = sent(ocp)
    here, found = ocp.solve(check="off", **how), there.solve(check="off", **how)
    assert found.iterations == here.iterations
    assert found.objective == pytest.approx(here.objective, rel=1e-12)
    assert np.allclose(found.x, here.x, rtol=0, atol=1e-9 * np.abs(here.x).max())
    assert instructions(there, **how) == instructions(ocp, **how)
    assert digest(there) == digest(ocp)
    assert digest(sent(there)) == digest(ocp)


@pytest.mark.few(4)
@pytest.mark.sample("free mesh", "parameters")
@pytest.mark.parametrize("kind", KINDS)
def test_a_solution_that_was_sent_answers_to_names(kind):
    ocp, how = KINDS[kind]()
    here = ocp.solve(check="off", **how)
    there = sent(here)
    for v in (*ocp.description.states, *ocp.description.controls):
        assert np.array_equal(there[v.name], here[v.symbol])
    for name, expression in ocp.description.named.items():
        assert np.allclose(there[name], here[expression], rtol=1e-12, atol=1e-12)
    assert there.check().worst == pytest.approx(here.check().worst, rel=1e-6, abs=1e-12)
    assert digest(there) == digest(here)
    again = there.problem.solve(initial=there, check="off", **how)
    assert again.iterations == ocp.solve(initial=here, check="off", **how).iterations
    assert again.objective == pytest.approx(here.objective, rel=1e-6)


@pytest.mark.slow
def test_a_solution_is_of_the_problem_that_was_solved():
    ocp, how = with_phases()
    here = ocp.solve(check="off", **how)
    ocp.limit(-0.5, ocp.description.states[1].symbol, 0.5)
    there = sent(here)
    assert there.problem.solve(check="off", **how).objective == pytest.approx(here.objective, rel=1e-9)
    assert ocp.solve(check="off", **how).objective > here.objective + 0.01


@pytest.mark.slow
def test_what_is_sent_together_stays_together():
    ocp, how = with_contacts()
    found = ocp.solve(check="off", **how)
    body = ocp._bodies[0]
    problem, other, solution = sent((ocp, body, found))
    assert other.problem is problem
    assert solution.problem is problem
    assert np.array_equal(other.motion(solution).q, body.motion(found).q)


def test_a_sent_problem_can_be_changed():
    ocp, how = with_phases()
    there = sent(ocp)
    x, v, u = (s.symbol for s in (*there.description.states, *there.description.controls))
    there.phase(5, 1.0)
    there.rate(x, v)
    there.rate(v, u)
    there.guess({"u": 0.1})
    assert there.solve(check="off", **how).duration > 1
    assert len(ocp.description.phases) == 2


def test_symbols_of_others_are_named():
    ocp, _ = with_phases()
    ocp.minimize(terminal=2 * ca.MX.sym("stranger"))
    with pytest.raises(UnknownName, match="stranger"):
        pickle.dumps(ocp)


@pytest.mark.slow
def test_the_digest_is_the_same_in_another_process(tmp_path):
    (tmp_path / "problems.pickle").write_bytes(pickle.dumps([KINDS[k]()[0] for k in ("parameters", "b_spline")]))
    program = """
import pickle, sys
from oc_dyn.digest import digest
import test_packing as T
for sent, kind in zip(pickle.load(open(sys.argv[1], "rb")), ("parameters", "b_spline")):
    print(digest(sent), digest(T.KINDS[kind]()[0]))
"""
    folders = [str(p) for p in sys.path] + [__file__.rpartition("/")[0]]
    told = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {folders!r}\n{program}", str(tmp_path / "problems.pickle")],
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    here = [digest(KINDS[k]()[0]) for k in ("parameters", "b_spline") for _ in range(2)]
    assert told == here


@pytest.mark.slow
def test_a_solution_that_was_saved_before_it_kept_the_bounds_of_limits():
    ocp, how = with_bernstein("uniform")
    found = ocp.solve(check="off", **how)
    state = {k: x for k, x in pickle.loads(pickle.dumps(found)).__getstate__().items() if k != "limit_bounds"}
    there = object.__new__(type(found))
    there.__setstate__(state)
    assert there.limit_bounds.keys() == found.limit_bounds.keys()
    assert there.check().worst == pytest.approx(found.check().worst, abs=1e-9)
