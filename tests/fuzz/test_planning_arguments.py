"""Wrong arguments of every kind where motions are planned: a result, or one of our errors, never one from inside."""

import casadi as ca
import numpy as np
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


def planned(key, x):
    options = {"q_start": [0, 0], "q_goal": [0.3, 0.1], "nodes": 8, "continuity": 2, "solver_options": {"max_iter": 3}}
    return od.plan_point_to_point(robot(), **{**options, key: x})


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
    **{
        f"path {key}": lambda x, key=key: along(key, x)
        for key in ("path", "at", "degree", "continuity", "limits", "scale", "ignore")
    },
    **{f"inverse {key}": lambda x, key=key: reached(key, x) for key in ("frame", "p", "R", "q_start", "tolerance")},
    "contact frames": lambda x: od.contact_wrenches(robot(), x),
    "pose_path frame": lambda x: od.pose_path(robot(), x, ca.Function("f", [S], [S]), HOME),
    "pose_path pose": lambda x: od.pose_path(robot(), "tip", x, HOME),
}
S = ca.SX.sym("s")


@examples(250)
@given(st.sampled_from(sorted(PLACES)), ODD)
def test_one_wrong_argument(place, x):
    sane(lambda: PLACES[place](x))


@examples(60)
@given(st.sampled_from(["t", "q", "fps", "size"]), ODD)
def test_animate(tmp_path_factory, key, x):
    sane(lambda: drawn(tmp_path_factory.getbasetemp(), key, x))
