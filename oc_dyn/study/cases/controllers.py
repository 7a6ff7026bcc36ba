"""The C of predictive controllers, which whoever asks compiles."""

import inspect
from pathlib import Path

import casadi as ca
import numpy as np

from .robots import READY

SPEED = 2.1  # [rad/s]
H = 0.02  # [s]


def panda(example, nodes, folder):
    """mpc.c and mpc.h of a controller of the Panda in a folder, with ten iterations, in double precision.

    example: as in problems/panda_nmpc.py: torques and speeds are limited, the target is known over the horizon; else
    torques alone, and a target that stays. The part has "instance", whether mpc.h declares mpc_t, which holds all that
    a step writes; and the numbers of entries that a caller of checkouts without it provides, of "arg", "res", "iw",
    "w" and "memory".
    """
    import oc_dyn as od

    robot = od.robots.panda("vendor") if example else od.robots.panda()
    most = od.Limits.of(robot).tau
    ocp = od.Problem(nodes, nodes * H)
    q, v, a = ocp.state("q", 7, guess=READY, scale=1), ocp.state("v", 7), ocp.control("a", 7)
    q_now, v_now = ocp.parameter("q_now", 7), ocp.parameter("v_now", 7)
    target = ocp.varying("r", 7) if example else ocp.parameter("target", 7)
    tau = od.function(robot, "inverse_dynamics", derivatives="analytic")(q, v, a)
    ocp.next(q, q + H * (v + H * a))
    ocp.next(v, v + H * a)
    ocp.limit(-1, tau / most, 1)
    if example:
        ocp.limit(-SPEED, v + H * a, SPEED)
    ocp.start({q: q_now, v: v_now})
    ocp.minimize(squares=np.sqrt(2 / H) * ca.vertcat(q - target, v / 10, tau / most / 10))
    ocp.minimize(terminal=10 * ca.sumsqr(q - target) + ca.sumsqr(v))
    # earlier releases know no bounds of outputs
    safe = "output_bounds" in inspect.signature(od.mpc).parameters
    options = {"output_bounds": {"tau": (-most, most)}} if safe else {}
    control = od.mpc(ocp, outputs={"tau": tau}, method="euler", **options)
    control.codegen(folder)
    f = control.function
    sizes = {k: getattr(f, f"sz_{k}")() for k in ("arg", "res", "iw", "w")}
    instance = "} mpc_t;" in Path(folder, "mpc.h").read_text(encoding="utf-8")
    yield {"part": "controller", "instance": instance, **sizes, "memory": f.numel_in("memory")}
