"""Starts that are faster than a limit: brake at once, and keep the limit from then on."""

import time

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import LimitError, SolveError
from oc_dyn.planning import braking

A, J = 4.0, 40.0


def slider():
    b = od.RobotBuilder("slider", gravity=(0, 0, 0))
    b.add_link("rail")
    b.add_body("car", "prismatic", "rail", joint="z", axis=(0, 0, 1), mass=2.0)
    return b.build()


def limits(**more):
    return od.Limits(("z",), **{"v": 1.0, "dv": A, "d2v": J, **more})


def plan(*task, robot=None, **options):
    options = {"continuity": 2, "check": "raise", **options}
    return od.plan_point_to_point(robot or slider(), *task, **options)


@pytest.mark.sample(1)
@pytest.mark.parametrize("v0", [3.0, -3.0, 1.05])
def test_least_time_of_a_triple_integrator(v0):
    """The acceleration falls at the rate J to -A and stays there: over / A + A / (2 J); or sqrt(2 over / J)."""
    over = abs(v0) - 1
    least = over / A + A / 2 / J if over >= A**2 / 2 / J else np.sqrt(2 * over / J)
    motion = plan([0.0], [2.0 * np.sign(v0)], v_start=[v0], limits=limits())
    until = motion.info["braking"]["until"]
    assert motion.info["braking"]["joints"] == ["z"]
    assert until == pytest.approx(least, rel=2e-3)
    assert until >= least * (1 - 1e-6)
    v = np.sign(v0) * motion.sample(np.linspace(0, motion.duration, 2001)).v[:, 0]
    t = np.linspace(0, motion.duration, 2001)
    assert np.all(np.diff(v[t <= until]) <= 1e-12)
    assert v[t >= until].max() <= 1 + 1e-9
    assert motion.check().ok(1e-6)
    assert max(motion.jumps().values()) < 1e-9
    assert motion.q[0] == 0
    assert motion.q[-1] == pytest.approx(2 * np.sign(v0))


@pytest.mark.slow
def test_all_of_it_takes_what_the_phases_do():
    """Brake, come back to the limit, and stop: in the end the joint rests at the goal, and no plan from where braking
    ended is faster."""
    motion = plan([0.0], [2.0], v_start=[3.0], limits=limits(), smoothing=0, mesh="free")
    until = motion.info["braking"]["until"]
    x = motion.sample([until])
    again = plan(x.q[0], [2.0], v_start=np.minimum(x.v[0], 1.0), dv_start=x.dv[0] * (1 - 1e-9), limits=limits(),
                 smoothing=0, mesh="free")  # fmt: skip
    assert motion.duration - until == pytest.approx(again.duration, rel=1e-4)


def test_unequal_limits_brake_by_their_own_side():
    motion = plan([0.0], [3.0], v_start=[3.0], limits=limits(dv=(-2.0, 9.0), d2v=4000.0))
    assert motion.info["braking"]["until"] == pytest.approx(1.0 + 2 / 8000, rel=2e-2)  # pieces of 1/30 s


@pytest.mark.parametrize("continuity", [3, pytest.param(4, marks=pytest.mark.slow)])
def test_smoother_motions(continuity):
    motion = plan([0.0], [2.0], v_start=[3.0], limits=limits(), continuity=continuity)
    assert 0.55 <= motion.info["braking"]["until"] <= 0.6
    assert motion.check().ok(1e-6)
    assert max(motion.jumps().values()) < 1e-6


@pytest.mark.slow
def test_a_panda_brakes_within_its_torques():
    arm = od.robots.panda()
    ready = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])
    own = od.Limits.of(arm)
    v = np.array([1.3 * own.v[0], 0.5, 0, -1.2 * own.v[3], 0, 0.0, 0])
    # the torque rate of the maker would jump at the start, where the acceleration is 0 at full speed
    options = {"v_start": v, "robot": arm, "nodes": 20, "scale": {"dv": 0.7}}
    motion = plan(ready, ready + 0.5, **options)
    report = motion.check()
    assert report.ok()
    assert set(report.braking[1]) == {"panda_joint1", "panda_joint4"}
    assert "started faster than a limit: panda_joint1, panda_joint4; velocities count from" in str(report)
    before = motion.sample(np.linspace(0, report.braking[0], 50)).v
    assert before[:, 1] == pytest.approx(np.full(50, 0.5), abs=0.1)  # keeps its speed
    assert np.abs(before[:, [2, 4, 5, 6]]).max() < 0.1


@pytest.mark.slow
def test_a_duration_includes_braking():
    motion = plan([0.0], [2.0], v_start=[3.0], limits=limits(), objective="effort", duration=2.5, nodes=20)
    assert motion.duration == pytest.approx(2.5)
    assert motion.check().ok()
    with pytest.raises(LimitError, match=r"duration 0.3 s is too short: braking alone takes 0.55"):
        plan([0.0], [2.0], v_start=[3.0], limits=limits(), objective="effort", duration=0.3)


@pytest.mark.slow
def test_files_tell_of_it(tmp_path):
    motion = plan([0.0], [2.0], v_start=[3.0], limits=limits())
    motion.save(tmp_path / "motion.json")
    again = od.Trajectory.load(tmp_path / "motion.json", slider()).check()
    assert again.ok(1e-6)
    assert again.braking[1] == ("z",)


@pytest.mark.slow
def test_what_cannot_brake_is_refused_by_name():
    with pytest.raises(LimitError, match="joint 'z' has 3, over its limit, and cannot stop before 1.125, outside its"):
        plan([0.0], [0.9], v_start=[3.0], limits=limits(q=(-1, 1)))
    with pytest.raises(LimitError, match="joint 'z' has 3, over its limit, and no limit says how hard it may brake"):
        plan([0.0], [2.0], v_start=[3.0], limits=od.Limits(("z",), v=1.0))
    with pytest.raises(LimitError, match="its limits let it not brake"):
        plan([0.0], [2.0], v_start=[3.0], limits=limits(dv=(0, 3)))
    with pytest.raises(LimitError, match="but its limits allow no motion"):
        plan([0.0], [0.0], v_start=[3.0], limits=limits(v=0.0))
    with pytest.raises(LimitError, match="v_goal: joint 'z' has 3, over its limit 1"):
        plan([0.0], [2.0], v_goal=[3.0], limits=limits())
    with pytest.raises((LimitError, SolveError)):  # it could stop with an acceleration that were there at once
        plan([0.0], [1.1], v_start=[3.0], limits=limits(q=(-2, 1.2)))


@pytest.mark.slow
def test_limits_that_depend_on_the_position_count_after_braking():
    robot, fast = slider(), lambda q: ([-1.0], [1.0])
    motion = plan([0.0], [3.0], v_start=[3.0], limits=limits(v_of_q=fast), robot=robot)
    assert motion.check().worst <= 1.001
    v = motion.sample(1e-3)
    assert np.abs(v.v[v.t >= motion.info["braking"]["until"]]).max() <= 1 + 1e-3


@pytest.mark.slow
def test_a_time_limit_is_no_reason_to_start_slower():
    panda = od.robots.panda()
    q, v = [0, -0.78, 0, -2.36, 0, 1.57, 0.78], [3.0, 0, 0, 0, 0, 0, 0]
    with pytest.raises(SolveError, match="'panda_joint1' .* the solver stopped with 'time_limit'$"):
        od.plan_point_to_point(panda, q, [0.5, *q[1:]], v_start=v, time_limit=1e-3)


@pytest.mark.parametrize("builds", [False, True])
def test_nothing_is_built_or_solved_after_the_time_limit(monkeypatch, builds):
    """Building the problem of braking takes seconds for an arm."""
    built = braking._problem

    def build(*given):
        assert builds
        time.sleep(0.3)
        return built(*given)

    monkeypatch.setattr(braking, "_problem", build)
    monkeypatch.setattr(od.Problem, "solve", lambda *_, **__: pytest.fail("solved"))
    with pytest.raises(SolveError, match="stopped with 'time_limit'$"):
        plan([0.0], [3.0], v_start=[3.0], limits=limits(), time_limit=0.2 if builds else 1e-9)
