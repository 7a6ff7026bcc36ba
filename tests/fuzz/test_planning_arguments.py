"""Wrong arguments of every kind where motions are planned: a result, or one of our errors, never one from inside."""

from functools import cache

import casadi as ca
import numpy as np
import pytest
from budget import examples
from hypothesis import given
from hypothesis import strategies as st
from test_arguments import ODD, sane

import oc_dyn as od

HOME = [0.1, 0.2]


def robot():
    return od.robots.planar_2r()


def problem(duration=1.0):
    ocp = od.Problem(4, duration)
    q, v, u = ocp.chain("q", 2, 2)
    return ocp, q, v, u


def of_problem(method, **fixed):
    """{place: call} of a method of a Problem, one argument of which is odd."""

    def call(key, x):
        ocp, q, v, u = problem()
        named = {"q": q, "v": v, "u": u}
        values = {k: named.get(y, y) if isinstance(y, str) else y for k, y in fixed.items()}
        return getattr(ocp, method)(**{**values, key: x})

    return {f"{method} {key}": lambda x, key=key: call(key, x) for key in fixed}


def to_solve(key, x):
    ocp, q, v, u = problem()
    r = ocp.parameter("r", 2)
    ocp.start({q: r, v: 0})
    ocp.goal({q: 1, v: 0})
    ocp.minimize(squares=u)
    options = {"parameters": {"r": 0.0}, "solver_options": {"max_iter": 5}, "raises": False}
    return ocp.solve(**{**options, key: x})


def controller(key, x):
    ocp, q, v, u = problem()
    ocp.start({q: ocp.parameter("q_now", 2), v: 0})
    ocp.minimize(squares=u)
    return od.mpc(ocp, **{"iterations": 1, key: x})


def stepped(x):
    return controller("name", "mpc").step(x)


OF_PLAN = (
    "nodes", "interior", "refinements", "smoothing", "mesh", "friction", "check", "v_start", "dv_goal", "derivatives",
    "hessian", "compiled",
)  # fmt: skip


def planned(key, x, **more):
    options = {"q_start": [0, 0], "q_goal": [0.3, 0.1], "nodes": 8, "continuity": 2, "solver_options": {"max_iter": 3}}
    return od.plan_point_to_point(robot(), **{**options, **more, key: x})


@cache
def still():
    limits = od.Limits.of(robot())
    return od.Trajectory(
        [0, 1], np.zeros((1, 3, 2)), joints=limits.joints, units=("rad",) * 2, robot=robot(), limits=limits
    )  # fmt: skip


def posed(key, x):
    s = ca.SX.sym("s")
    found = od.function(robot(), "frame_pose", frame="tip")(q=ca.vertcat(0.1 + 0.1 * s, 0.2))
    pose = ca.Function("pose", [s], [found["R"], found["p"]])
    return od.pose_path(robot(), "tip", pose, **{"q_start": HOME, "points": 3, "tolerance": 1e-3, key: x})


def simulated(key, x):
    return od.simulate(robot(), **{"q": HOME, "v": [0, 0], "tau": np.zeros((3, 2)), "h": 1e-3, key: x})


def along(key, x):
    options = {"path": [[0, 0], [0.3, 0.1]], "nodes": 8, "continuity": 2, "solver_options": {"max_iter": 3}}
    options |= {"ignore": ("d2v", "dtau")}
    return od.plan_along_path(robot(), **{**options, key: x})


def reached(key, x):
    return od.inverse_kinematics(robot(), **{"frame": "tip", "p": [0.5, 0, 0.5], "steps": 5, key: x})


def drawn(tmp, key, x):
    given_ = {"t": [0, 0.1], "q": np.zeros((2, 2)), "path": tmp / "x.gif", "fps": 10, "size": (64, 64), key: x}
    return od.animate(robot(), **given_)


PLACES = {
    "Problem nodes": lambda x: od.Problem(x if not isinstance(x, int) or x < 1000 else 1, 1.0),
    "Problem duration": lambda x: od.Problem(3, x),
    **of_problem("state", name="x", size=2, lower=-1, upper=1, scale=1, guess=0),
    **of_problem("control", name="x", size=2, lower=-1, upper=1, scale=1, guess=0),
    **of_problem("parameter", name="x", size=2),
    **of_problem("varying", name="x", size=2),
    **of_problem("chain", name="x", size=2, order=2, bounds=(), scale=None, guess=0, basis="taylor"),
    **of_problem("limit", lower=-1, expression="q", upper=1),
    **of_problem("rate", state="q", expression="v"),
    **of_problem("next", state="q", expression="v"),
    **of_problem("join", state="q", expression="v"),
    **of_problem("phase", nodes=2, duration=1.0),
    **of_problem("minimize", integral=0, terminal=0, squares=0),
    **of_problem("start", values={}),
    **of_problem("goal", values={}),
    **{
        f"solve {key}": lambda x, key=key: to_solve(key, x)
        for key in ("solver", "hessian", "parameters", "initial", "solver_options")
    },
    "solve method": lambda x: to_solve("method", x if not callable(x) else "rk4"),  # one's own may raise what it likes
    "solve parameter": lambda x: to_solve("parameters", {"r": x}),
    **{
        f"mpc {key}": lambda x, key=key: controller(key, x)
        for key in ("outputs", "method", "hessian", "qpsol", "iterations", "shift", "name", "solver_options")
    },
    "mpc step": stepped,
    "mpc measured": lambda x: stepped({"q_now": x}),
    **{
        f"plan {key}": lambda x, key=key: planned(key, x)
        for key in ("q_start", "q_goal", "continuity", "objective", "duration", "limits", "scale", "ignore", "initial")
    },
    **{f"plan {key}": lambda x, key=key: planned(key, x) for key in OF_PLAN},
    **{
        f"path {key}": lambda x, key=key: along(key, x)
        for key in ("path", "at", "degree", "continuity", "limits", "scale", "ignore", "nodes", "friction", "check")
    },
    **{
        f"inverse {key}": lambda x, key=key: reached(key, x)
        for key in ("frame", "p", "R", "q_start", "tolerance", "steps")
    },
    **{f"poses {key}": lambda x, key=key: posed(key, x) for key in ("tolerance", "points", "check", "q_start")},
    **{f"simulate {key}": lambda x, key=key: simulated(key, x) for key in ("q", "v", "tau", "h", "friction")},
    "check dt": lambda x: still().check(dt=x),
    "sample": lambda x: still().sample(x),
    "effort duration": lambda x: planned("duration", x, objective="effort"),
    "rigid_body friction": lambda x: od.Problem(2, 1.0).rigid_body(robot(), friction=x),
    "contact frames": lambda x: od.contact_wrenches(robot(), x),
    "pose_path frame": lambda x: od.pose_path(robot(), x, ca.Function("f", [S], [S]), HOME),
    "pose_path pose": lambda x: od.pose_path(robot(), "tip", x, HOME),
}
S = ca.SX.sym("s")
EXTREME = (10**9, 2**31 - 1, 2**31, -1, 1000, 1e300, 1e-300, 5e-324, -1e-300, 1e9, 1e-9, np.inf, np.nan, 0)
NUMBERS = {
    **{
        f"plan {key}": lambda x, key=key: planned(key, x)
        for key in ("nodes", "interior", "refinements", "smoothing", "continuity")
    },
    "plan goal": lambda x: planned("q_goal", [x, 0]),
    "plan start": lambda x: planned("q_start", [x, 0]),
    "plan v_start": lambda x: planned("v_start", [x, 0]),
    "plan duration": lambda x: planned("duration", x, objective="effort"),
    "path goal": lambda x: along("path", [[0, 0], [x, 0]]),
    "path nodes": lambda x: along("nodes", x),
    "path degree": lambda x: along("degree", x),
    "path continuity": lambda x: along("continuity", x),
    "chain order": lambda x: problem()[0].chain("x", 1, x),
    "chain spline order": lambda x: problem()[0].chain("x", 1, x, basis="b_spline"),
    "chain size": lambda x: problem()[0].chain("x", x, 2) if x != 1000 else None,
    "problem nodes": lambda x: od.Problem(x, 1.0),
    "inverse p": lambda x: reached("p", [x, 0, 0.5]),
    "inverse tolerance": lambda x: reached("tolerance", x),
    "inverse steps": lambda x: reached("steps", x),
    "poses tolerance": lambda x: posed("tolerance", x),
    "poses points": lambda x: posed("points", x),
    "check dt": lambda x: still().check(dt=x),
    "sample": lambda x: still().sample(x),
    **{
        f"{name} limit {quantity}": lambda x, call=call, quantity=quantity: call(
            "limits", od.Limits(robot().coordinate_names, **{"v": 1.0, "dv": 5.0, quantity: x})
        )
        for name, call in (("plan", planned), ("path", along))
        for quantity in ("v", "dv", "d2v", "tau", "dtau")
    },
}


@pytest.mark.few(6)
@pytest.mark.slow
@pytest.mark.parametrize("place", sorted(NUMBERS))
def test_extreme_numbers(place):
    """A result or one of our errors, at once."""
    for x in EXTREME:
        with np.errstate(all="ignore"):
            sane(lambda x=x: NUMBERS[place](x))


@pytest.mark.slow
def test_some_extreme_numbers():
    rng = np.random.default_rng(0)
    for place in sorted(NUMBERS):
        for k in rng.choice(len(EXTREME), 2, replace=False):
            with np.errstate(all="ignore"):
                sane(lambda place=place, k=k: NUMBERS[place](EXTREME[k]))


def test_extreme_numbers_are_refused_by_name():
    for call, words in (
        (lambda: planned("q_goal", [1e-300, 0]), "start and goal differ by 1e-300"),
        (lambda: planned("q_goal", [1e300, 0]), "'shoulder' is to be at 1e.300"),
        (lambda: planned("scale", {"v": 1e-300}), "its limit v of 3e-300"),
        (lambda: planned("nodes", 10**9), "nodes is 1000000000, it goes up to 10000"),
        (lambda: along("nodes", 10**9), "nodes is 1000000000, it goes up to 10000"),
        (lambda: problem()[0].chain("x", 1, 1000), "order is 1000, expected an integer from 1 to 20"),
        (lambda: planned("duration", 1e300, objective="effort"), "duration is 1e.300 s"),
    ):
        with pytest.raises(od.errors.ALL, match=words):
            call()


@examples(250)
@given(st.sampled_from(sorted(PLACES)), ODD)
def test_one_wrong_argument(place, x):
    sane(lambda: PLACES[place](x))


@examples(60)
@given(st.sampled_from(["t", "q", "fps", "size"]), ODD)
def test_animate(tmp_path_factory, key, x):
    sane(lambda: drawn(tmp_path_factory.getbasetemp(), key, x))
