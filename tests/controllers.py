"""What the tests of controllers share: a small problem of model-predictive control with its plant."""

import ctypes
import shutil
import subprocess

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od

needs_compiler = pytest.mark.skipif(
    not any(shutil.which(c) for c in ("cc", "gcc", "clang")), reason="needs a C compiler"
)
H = 0.05


def pendulum(nodes=15):
    """(Problem, Function of the plant, of what is measured): swing to a moving angle, torque limited."""
    robot = od.robots.planar_2r()
    dynamics = od.function(robot, "inverse_dynamics", derivatives="analytic")
    ocp = od.Problem(nodes, nodes * H)
    q, v, a = ocp.state("q", 2, scale=1), ocp.state("v", 2, scale=1), ocp.control("a", 2, scale=10)
    q_now, v_now, r = ocp.parameter("q_now", 2), ocp.parameter("v_now", 2), ocp.varying("r", 2)
    ocp.next(q, q + H * v + H**2 / 2 * a)
    ocp.next(v, v + H * a)
    most = 1.3 * np.abs(np.array(dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0]))).max() + 1
    tau = dynamics(q, v, a)
    ocp.limit(-1, tau / most, 1)
    ocp.start({q: q_now, v: v_now})
    ocp.minimize(squares=ca.vertcat(q - r, 0.1 * v, 0.1 * tau / most))
    ocp.minimize(terminal=ca.sumsqr(q - r) + 0.1 * ca.sumsqr(v))
    x, u = ca.SX.sym("x", 5), ca.SX.sym("u", 2)
    f = od.function(robot, "forward_dynamics")
    rate = ca.Function("rate", [x, u], [ca.vertcat(x[2:4], f(x[:2], x[2:4], u), 1)])
    plant = ca.Function("pl", [x, u], [ca.simpleRK(rate, 2)(x, u, H)])
    times = x[4] + H * ca.DM(range(nodes + 1)).T
    wanted = ca.vertcat(0.3 * ca.sin(2 * times), -0.2 * ca.sin(3 * times))
    seen = ca.Function("seen", [x], [x[:2], x[2:4], wanted], ["x"], ["q_now", "v_now", "r"])
    return ocp, tau, plant, seen


class CStep:
    """<name>_step of a library from the folder of codegen: (memory, values) -> status; the outputs are in `out`."""

    def __init__(self, folder, controller, flags=("-O1",)):
        name = controller.name
        path = folder / f"{name}{'_'.join(flags)}.so"
        part = path.with_suffix(".o")
        subprocess.run(["gcc", "-std=c99", *flags, "-fPIC", "-c", "-o", part, folder / f"{name}.c"], check=True)
        # without the flags: with -ffast-math all of this process would round small numbers to zero from here on
        subprocess.run(["gcc", "-shared", "-o", path, part, "-lm"], check=True)
        self.library, f = ctypes.CDLL(str(path)), controller.function
        sizes = (ctypes.c_longlong * 4)()
        places = [ctypes.byref(sizes, 8 * k) for k in range(4)]
        getattr(self.library, f"{name}_work")(*places)
        self.arg, self.res = (ctypes.c_void_p * (sizes[0] + 1))(), (ctypes.c_void_p * (sizes[1] + 1))()
        self.iw, self.w = np.zeros(sizes[2] + 1, np.int64), np.zeros(sizes[3] + 1)
        self.out = [np.zeros(f.nnz_out(i)) for i in range(f.n_out())]
        getattr(self.library, f"{name}_incref")()
        self.mem = getattr(self.library, f"{name}_checkout")()
        self.step = getattr(self.library, f"{name}_step")

    def __call__(self, memory, values):
        given = [np.ascontiguousarray(x, float).T.ravel() for x in (memory, *values)]
        for slots, arrays in ((self.arg, given), (self.res, self.out)):
            for k, x in enumerate(arrays):
                slots[k] = x.ctypes.data
        work = [ctypes.c_void_p(x.ctypes.data) for x in (self.iw, self.w)]
        return self.step(self.arg, self.res, *work, self.mem)
