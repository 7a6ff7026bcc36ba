"""Ctrl-C and limits of time: in solvers, planners, compilers, workers and the command line."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import cli, interrupts
from oc_dyn.files import together
from oc_dyn.optimal_control import stage_kinds
from oc_dyn.planning import point_to_point
from oc_dyn.study.interrupts import ENDLESS, interrupted, problem

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="needs signals of POSIX")
SOLVERS = list(ENDLESS)
START, GOAL = np.zeros(2), np.array([1.0, -0.6])
LATE = 5.0  # seconds that a machine under load may take


def arm():
    return od.robots.planar_2r()


def solved(solver, ocp, **options):
    return ocp.solve(solver=solver, solver_options=ENDLESS[solver], **options)


@contextlib.contextmanager
def ctrl_c(after):
    """SIGINT to this process after so many seconds."""
    timer = threading.Timer(after, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    yield
    timer.join()


class Signalling:
    """A bar that sends SIGINT at an iteration."""

    def __init__(self, at=2):
        self.left = at

    def update(self):
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)


# -- limits of time --------------------------------------------------------------------------------------------------


def test_the_earliest_deadline_counts():
    with od.deadline(60):
        with od.deadline(1e-9):
            with od.deadline(60), od.deadline(None):
                assert interrupts.expired()
        assert not interrupts.expired()


@pytest.mark.parametrize("seconds", [0, -1.0, np.nan, np.inf, True, "soon", [1, 2]])
def test_a_limit_that_is_none(seconds):
    with pytest.raises(od.ShapeError, match="time limit"), od.deadline(seconds):
        pass


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_time_limit_of_a_problem(solver):
    ocp = problem(nodes=30, n=2)
    first = ocp.solve(solver=solver, raises=False)
    begun = time.perf_counter()
    with pytest.raises(od.SolveError) as stopped:
        solved(solver, ocp, time_limit=0.01)
    assert stopped.value.status == "time_limit"
    assert time.perf_counter() - begun < LATE
    last = stopped.value.solution
    assert last.x.shape == (31, 4)
    assert last.u.shape == (30, 2)
    assert np.isfinite(last.unknowns).all()
    assert solved(solver, ocp, time_limit=1e-4, raises=False).status == "time_limit"
    again = ocp.solve(solver=solver, raises=False)  # by the same solver, which nothing is left in
    assert again.iterations == first.iterations
    assert again.objective == first.objective


@pytest.mark.sample(1)
@pytest.mark.parametrize("solver", SOLVERS)
def test_a_limit_that_is_not_reached(solver):
    ocp = problem(nodes=20, n=2)
    free, limited = (ocp.solve(solver=solver, time_limit=t, raises=False) for t in (None, 60.0))
    assert limited.status == free.status
    assert limited.objective == free.objective


@pytest.mark.parametrize("solver", SOLVERS)
def test_other_threads_have_limits_of_their_own(solver):
    found = {}

    def limited(name, seconds):
        with od.deadline(seconds):
            found[name] = solved(solver, problem(nodes=20, n=2), raises=False).status

    threads = [threading.Thread(target=limited, args=x) for x in (("short", 1e-4), ("also short", 0.01))]
    for t in threads:
        t.start()
    with od.deadline(600):
        for t in threads:
            t.join()
    assert found == {"short": "time_limit", "also short": "time_limit"}


def test_a_callback_of_the_user_is_called_and_the_limit_holds():
    class Count(ca.Callback):
        def __init__(self, sizes):
            super().__init__()
            self.sizes, self.calls = sizes, 0
            self.construct("count", {})

        def get_n_in(self):
            return ca.nlpsol_n_out()

        def get_n_out(self):
            return 1

        def get_sparsity_in(self, i):
            return ca.Sparsity.dense(self.sizes.get(ca.nlpsol_out(i), 0), 1)

        def eval(self, _):
            self.calls += 1
            return [0]

    ocp = problem(nodes=20, n=2)
    n, _ = ocp.transcribed().assembly.size
    first, second = Count({"x": n, "f": 1}), Count({"x": n, "f": 1})
    for count in (first, second):  # alike, but not the same
        options = {**ENDLESS["ipopt"], "iteration_callback": count}
        assert ocp.solve(solver_options=options, time_limit=0.1, raises=False).status == "time_limit"
    assert first.calls > 1
    assert second.calls > 1


@pytest.fixture
def passing(monkeypatch):
    """passing(n): from the n-th question on the deadline has passed; the list that it gives has an entry for each."""

    def passes(at):
        asked = []
        monkeypatch.setattr(interrupts, "expired", lambda: asked.append(len(asked)) or len(asked) > at)
        return asked

    return passes


def _kinds(monkeypatch):
    """Names of the kinds of stages that are begun."""
    begun, kind = [], stage_kinds.kind

    def counted(name, *rest, **options):
        begun.append(name)
        return kind(name, *rest, **options)

    monkeypatch.setattr(stage_kinds, "kind", counted)
    return begun


def test_a_deadline_stops_what_is_built_before_the_solver(monkeypatch):
    begun = _kinds(monkeypatch)
    ocp = problem(nodes=20, n=2)
    with od.deadline(1e-9), pytest.raises(od.SolveError, match="building the program") as stopped:
        ocp.solve()
    assert stopped.value.status == "time_limit"
    assert stopped.value.solution is None
    assert begun == []
    assert ocp.solve().success  # nothing half built is left
    assert len(begun) > 1


@pytest.mark.slow
def test_a_deadline_stops_between_the_parts_of_a_program(monkeypatch, passing):
    expired = interrupts.expired
    ocp, told = problem(nodes=20, n=2), []
    for at in range(100):
        passing(at)
        try:
            ocp.solve()
            break
        except od.SolveError as error:
            told.append(str(error))
            if "building" not in told[-1]:
                break
    assert len(told) > 5
    monkeypatch.setattr(interrupts, "expired", expired)
    whole = problem(nodes=20, n=2).solve()
    found = ocp.solve()
    assert found.objective == whole.objective
    assert found.iterations == whole.iterations


def test_a_solve_that_does_not_raise_gives_the_guess():
    ocp = problem(nodes=20, n=2)
    with od.deadline(1e-9):
        found = ocp.solve(raises=False, check="off")
    assert found.status == "time_limit"
    assert np.isfinite(found.unknowns).all()


def test_time_limit_of_planners():
    panda = od.robots.panda()
    ends = [0, -0.6, 0, -2, 0, 1.4, 0.7], [0.8, 0.2, -0.4, -1.2, 0.5, 2, 0]
    with pytest.raises(od.SolveError) as stopped:
        od.plan_point_to_point(panda, *ends, nodes=20, time_limit=1e-3)
    assert stopped.value.status == "time_limit"
    assert stopped.value.trajectory.sample(0.1).q.shape[1] == 7
    with pytest.raises(od.SolveError) as stopped:
        od.plan_along_path(panda, ends, nodes=20, time_limit=1e-3)
    assert stopped.value.status == "time_limit"
    assert stopped.value.trajectory.duration > 0


def _planners():
    """{name: (robot) -> plan}, of which each builds a program first."""
    ends, limits = ([0.1, 0.2], [0.6, -0.4]), {"v": 2.0, "dv": 10.0, "d2v": 100.0, "tau": 400.0, "dtau": 1e5}
    effort = {"objective": "effort", "duration": 2.0, "nodes": 8, "check": "off", "progress": False}

    def limited(robot):
        return od.Limits(robot.coordinate_names, **limits)

    def elastic(robot):
        made = od.elastic.elastic_robot(robot, stiffness=1000.0, motor_inertia=0.5)
        return od.elastic.plan_elastic(made, *ends, motor_torque=[300, 150], nodes=8, check="off")

    return {
        "point to point": lambda r: od.plan_point_to_point(r, *ends, limits=limited(r), **effort),
        "path": lambda r: od.plan_along_path(r, ends, limits=limited(r), nodes=10, check="off"),
        "elastic": elastic,
    }


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(_planners()))
def test_planners_stop_while_they_build(name, monkeypatch):
    """With the motion that the solver would have begun with; what was built so far is none for the next one."""
    work, robot, nlpsol, solvers = _planners()[name], arm(), ca.nlpsol, []
    monkeypatch.setattr(ca, "nlpsol", lambda *a, **k: solvers.append(a) or nlpsol(*a, **k))
    with od.deadline(1e-9), pytest.raises(od.SolveError) as stopped:
        work(robot)
    assert stopped.value.status == "time_limit"
    assert stopped.value.trajectory.duration > 0
    assert solvers == []
    assert work(robot).duration == work(arm()).duration


@pytest.mark.slow
def test_time_limit_of_an_elastic_plan():
    elastic = od.elastic.elastic_robot(arm(), stiffness=1000.0, motor_inertia=0.5)
    with pytest.raises(od.SolveError) as stopped:
        od.elastic.plan_elastic(elastic, START, GOAL, motor_torque=[300, 150], nodes=10, time_limit=1e-3)
    assert stopped.value.status == "time_limit"
    assert stopped.value.trajectory.joints == elastic.links.coordinate_names


def test_time_limit_of_inverse_kinematics_and_of_what_calls_it():
    robot = od.robots.panda()
    tool = list(robot.frames)[-1]
    with pytest.raises(od.SolveError) as stopped:
        od.inverse_kinematics(robot, tool, p=[0.3, 0.2, 0.5], time_limit=1e-9)
    assert stopped.value.status == "time_limit"
    assert stopped.value.solution.shape == (7,)
    s = ca.SX.sym("s")
    pose = ca.Function("pose", [s], [ca.DM.eye(3), ca.vertcat(0.3, s, 0.5)])
    with od.deadline(1e-9), pytest.raises(od.SolveError) as stopped:
        od.pose_path(robot, tool, pose, robot.neutral())
    assert stopped.value.status == "time_limit"


@pytest.mark.slow
def test_deadline_of_a_closed_loop():
    ocp = od.Problem(5, 0.5)
    now = ocp.parameter("now", 2)
    x, u = ocp.state("x", 2), ocp.control("u", 2, lower=-1, upper=1)
    ocp.rate(x, u)
    ocp.start({x: now})
    ocp.minimize(squares=ca.vertcat(x, u))
    control = od.mpc(ocp)
    X, U = ca.SX.sym("x", 2), ca.SX.sym("u", 2)
    plant = ca.Function("plant", [X, U], [X + 0.1 * U])
    measured = ca.Function("measured", [X], [X], ["x"], ["now"])
    with od.deadline(0.2), pytest.raises(od.SolveError) as stopped:
        control.closed_loop(plant, [1.0, 0.0], 10**6, {}, measured)
    assert stopped.value.status == "time_limit"
    loop = stopped.value.trajectory
    assert loop.x.shape == (len(loop.seconds), 2)
    assert len(loop.seconds) > 0


def test_deadline_of_identification():
    robot = arm()
    with od.deadline(1e-9), pytest.raises(od.SolveError) as stopped:
        od.identification.exciting_motion(robot, harmonics=2, iterations=5)
    assert stopped.value.status == "time_limit"


# -- Ctrl-C in a solver ----------------------------------------------------------------------------------------------


def _every_signal_is_heard(solver, many, within):
    iteration, found = interrupted(solver, many, seed=3, within=within)
    assert [kind for _, kind, _ in found] == ["KeyboardInterrupt"] * many
    assert max(late for *_, late in found) < LATE + 2 * iteration


@pytest.mark.sample(1)
@POSIX
@pytest.mark.parametrize("solver", SOLVERS)
def test_ctrl_c_in_a_solver(solver):
    _every_signal_is_heard(solver, 2, 0.3)


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_ctrl_c_at_more_moments(solver):
    _every_signal_is_heard(solver, 6, 1.0)


@POSIX
@pytest.mark.slow
def test_ctrl_c_after_a_solve_that_has_ended():
    _every_signal_is_heard("fatrop", 3, 25.0)  # its solves of this problem take a few seconds


def test_ctrl_c_is_not_taken_for_a_failure_of_the_solver_by_a_planner(monkeypatch):
    bar = Signalling()
    monkeypatch.setattr(point_to_point, "_bar", lambda _: contextlib.nullcontext(bar))
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        od.plan_point_to_point(arm(), START, GOAL, nodes=10, limits=_limits())
    assert bar.left == 0  # the iteration of the signal was the last one
    assert signal.getsignal(signal.SIGINT) is before


def _limits():
    return od.Limits(arm().coordinate_names, v=2.0, dv=8.0, d2v=80.0)


def test_a_handler_that_raises_nothing_stops_nothing(monkeypatch):
    called = []
    before = signal.signal(signal.SIGINT, lambda *_: called.append(True))
    try:
        monkeypatch.setattr(point_to_point, "_bar", lambda _: contextlib.nullcontext(Signalling()))
        od.plan_point_to_point(arm(), START, GOAL, nodes=10, limits=_limits())
    finally:
        signal.signal(signal.SIGINT, before)
    assert called == [True]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGALRM"])
def test_what_a_handler_raises_comes_out(name, monkeypatch):
    class Enough(Exception):
        pass

    def stop(*_):
        raise Enough

    class Bar(Signalling):
        def update(self):
            signal.raise_signal(getattr(signal, name))

    if not hasattr(signal, name):
        pytest.skip(f"no {name} here")
    before = signal.signal(getattr(signal, name), stop)
    try:
        monkeypatch.setattr(point_to_point, "_bar", lambda _: contextlib.nullcontext(Bar()))
        with pytest.raises(Enough):
            od.plan_point_to_point(arm(), START, GOAL, nodes=10, limits=_limits())
        assert signal.getsignal(getattr(signal, name)) is stop
    finally:
        signal.signal(getattr(signal, name), before)


def test_a_solver_within_a_solver():
    heard = []

    class Inner(ca.Callback):
        def __init__(self):
            super().__init__()
            self.construct("inner", {"enable_fd": True})

        def eval(self, arguments):
            try:
                with interrupts.solver_run() as run:
                    if not heard:
                        signal.raise_signal(signal.SIGINT)
                    heard.append(run.stops())
            except KeyboardInterrupt:
                heard.append("raised inside")
                raise
            return arguments

    inner, x = Inner(), ca.MX.sym("x")
    options = {"ipopt": {"print_level": 0, "sb": "yes"}, "print_time": False}
    solver = ca.nlpsol("s", "ipopt", {"x": x, "f": (inner(x) - 1) ** 2}, {**options, "show_eval_warnings": False})
    with pytest.raises(KeyboardInterrupt), interrupts.solver_run():
        solver(x0=0)
    assert heard[:2] == [True, "raised inside"]


def test_what_was_swallowed_is_raised_at_the_end():
    with pytest.raises(KeyboardInterrupt), interrupts.watched():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_what_was_swallowed_is_recorded():
    before = signal.getsignal(signal.SIGINT)
    with interrupts.recorded(signal.SIGINT) as raised:
        assert raised == []
        with contextlib.suppress(KeyboardInterrupt), interrupts.watched():
            signal.raise_signal(signal.SIGINT)
        assert [type(error) for error in raised] == [KeyboardInterrupt]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_default_handler_is_used_instead_of_the_present_one():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts.recorded(signal.SIGINT) as raised:
            signal.raise_signal(signal.SIGINT)
        assert raised == []
        with (
            interrupts.recorded(signal.SIGINT, default=signal.default_int_handler) as raised,
            pytest.raises(KeyboardInterrupt),
        ):
            signal.raise_signal(signal.SIGINT)
        assert len(raised) == 1
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("listening", [lambda: interrupts.recorded(signal.SIGINT), interrupts.watched])
def test_a_handler_that_is_set_within_stays(listening):
    before = signal.getsignal(signal.SIGINT)

    def theirs(*_):
        pass

    try:
        with listening():
            signal.signal(signal.SIGINT, theirs)
        assert signal.getsignal(signal.SIGINT) is theirs
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_integrator_does_not_make_a_failure_of_it():
    class Rate(ca.Callback):
        def __init__(self):
            super().__init__()
            self.construct("rate", {"enable_fd": True})

        def eval(self, arguments):
            signal.raise_signal(signal.SIGINT)
            return arguments

    rate, x = Rate(), ca.MX.sym("x")
    run = ca.integrator("run", "cvodes", {"x": x, "ode": -rate(x)}, 0.0, [1.0])
    with pytest.raises(KeyboardInterrupt), interrupts.watched():
        with contextlib.suppress(RuntimeError):
            run(x0=1)


# -- programs, workers, files ----------------------------------------------------------------------------------------

SLEEPY = """#!/bin/sh
case "$*" in *-E*) exit 0;; esac
echo half > "{folder}/half.so"
sleep 60 &
echo $! >> "{folder}/started"
wait
"""


def _lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")


def _gone(pids):
    end = time.monotonic() + LATE
    while any(map(_lives, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(_lives, pids))


@pytest.mark.sample(1)
@POSIX
@pytest.mark.parametrize("many", [1, 3])
def test_ctrl_c_ends_the_compilers(tmp_path, many):
    compiler, cache, started = tmp_path / "sleepy", tmp_path / "cache", tmp_path / "started"
    compiler.write_text(SLEEPY.format(folder=tmp_path))
    compiler.chmod(0o755)
    x = ca.SX.sym("x")
    functions = [ca.Function(f"f{k}", [x], [x + k]) for k in range(many)]
    begun = time.monotonic()
    with ctrl_c(0.5), pytest.raises(KeyboardInterrupt):
        od.compile(functions, compiler=str(compiler), cache=cache)
    assert time.monotonic() - begun < LATE
    assert _gone([int(pid) for pid in started.read_text().split()])
    assert list(cache.iterdir()) == []


@pytest.mark.slow
@POSIX
def test_a_time_out_ends_what_a_program_has_started():
    words = ["sh", "-c", "sleep 60 & echo $!; wait"]
    with pytest.raises(subprocess.TimeoutExpired) as stopped:
        interrupts.command(words, timeout=0.3)
    assert _gone([int(stopped.value.stdout)])


def test_a_program_is_given_its_input():
    done = interrupts.command([sys.executable, "-c", "print(input()[::-1])"], "abc\n")
    assert (done.returncode, done.stdout.strip()) == (0, "cba")


WORKERS = """
import sys, time
from oc_dyn.executors import completed
if __name__ == "__main__":
    print("begun", flush=True)
    try:
        list(completed(time.sleep, [(60,)] * 4, "processes:2"))
    except KeyboardInterrupt:
        print(time.monotonic(), flush=True)
        sys.exit(130)
"""


@POSIX
@pytest.mark.parametrize("after", [0.2, *(pytest.param(t, marks=pytest.mark.slow) for t in (0.6, 1.5))])
def test_ctrl_c_on_a_terminal_leaves_no_workers(tmp_path, after):
    script = tmp_path / "workers.py"
    script.write_text(WORKERS)
    path = os.pathsep.join(sys.path)
    process = subprocess.Popen(
        [sys.executable, str(script)], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    process.stdout.readline()
    time.sleep(after)
    sent = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert float(out) - sent < LATE
    assert said == ""
    end = time.monotonic() + LATE
    while time.monotonic() < end:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    pytest.fail("processes are left")


def test_files_take_their_places_together(tmp_path):
    folder = tmp_path / "new" / "folder"
    with pytest.raises(KeyboardInterrupt), together(folder) as part:
        (part / "a").write_text("half")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    with together(folder) as part:
        (part / "a").write_text("whole")
        assert [p.name for p in folder.iterdir()] == [part.name]
    assert [(p.name, p.read_text()) for p in folder.iterdir()] == [("a", "whole")]


PLAN = "plan panda --from 0 -0.6 0 -2 0 1.4 0.7 --to 0.8 0.2 -0.4 -1.2 0.5 2 0".split()


COMMAND = "import sys; from oc_dyn.cli import main; print('begun', flush=True); sys.exit(main(sys.argv[1:]))"


@pytest.mark.slow
@POSIX
def test_ctrl_c_in_the_command_line(tmp_path):
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *PLAN, "--nodes", "400", "--out", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    process.stdout.readline()
    time.sleep(1.0)
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == "oc-dyn: stopped\n"
    assert not out.exists()


def test_ctrl_c_while_files_are_written(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(od.Trajectory, "plot", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    words = [*PLAN, "--nodes", "10", "--ignore", "tau", "dtau", "--quiet"]
    assert cli.main([*words, "--out", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err == "oc-dyn: stopped\n"
    assert list(tmp_path.iterdir()) == []


def test_time_limit_of_the_command_line(tmp_path, capsys):
    assert cli.main([*PLAN, "--time-limit", "0.001", "--out", str(tmp_path / "out")]) == 2
    assert "'time_limit'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


SCRIPT = """'''A script.'''
import signal
from dataclasses import dataclass
import oc_dyn as od

@dataclass
class Config:
    n: int = 1

def solve(run, cfg):
    run.table("t.csv", {"x": [1.0]})
    signal.raise_signal(signal.SIGINT)

main = od.script(solve, Config())
"""


def test_ctrl_c_in_a_script(tmp_path, capsys, monkeypatch):
    (tmp_path / "stopped_script.py").write_text(SCRIPT)
    monkeypatch.syspath_prepend(tmp_path)
    import stopped_script

    assert stopped_script.main(["--out", tmp_path / "out", "--quiet"]) == 130
    assert capsys.readouterr().err == "stopped_script: stopped\n"
    assert not (tmp_path / "out").exists()
