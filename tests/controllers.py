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


_SHIM = """#include <string.h>
#include "NAME.h"
#ifdef __cplusplus
extern "C"
#endif
int shim(const double *memory, const double *in, double *out, double *results) {
  static NAME_t self;
  static NAME_in given;
  static NAME_out found;
  int status;
  NAME_init(&self);
  memcpy(self.memory, memory, sizeof self.memory);
  memcpy(&given, in, sizeof given);
  status = NAME_step(&self, &given, &found);
  memcpy(out, &found, OUTPUTS * sizeof(double));
  memcpy(out + OUTPUTS, self.memory, sizeof self.memory);
  results[0] = found.objective;
  results[1] = found.violation;
  results[2] = status;
  results[3] = found.iterations;
  return status;
}
"""


class CStep:
    """<name>_step of a library from the folder of codegen, a step of an instance with a given memory:
    (memory, values) -> status; the outputs are in `out`, as those of controller.function."""

    def __init__(self, folder, controller, flags=("-O1",)):
        name = controller.name
        path = folder / f"{name}{'_'.join(flags)}.so"
        outputs = str(sum(controller.outputs.values()))
        (folder / "shim.c").write_text(_SHIM.replace("NAME", name).replace("OUTPUTS", outputs))
        parts = [path.with_suffix(f".{k}.o") for k in range(2)]
        for part, source in zip(parts, (f"{name}.c", "shim.c"), strict=True):
            subprocess.run(["gcc", "-std=c99", *flags, "-fPIC", "-c", "-o", part, folder / source], check=True)
        # without the flags: with -ffast-math all of this process would round small numbers to zero from here on
        subprocess.run(["gcc", "-shared", "-o", path, *parts, "-lm"], check=True)
        self.step, f = ctypes.CDLL(str(path)).shim, controller.function
        sizes = [*controller.outputs.values(), controller.start.size]
        self._found = np.zeros(sum(sizes) + 4)
        self.out = np.split(self._found, np.cumsum([*sizes, 1, 1, 1]))
        assert len(self.out) == f.n_out()

    def __call__(self, memory, values):
        memory = np.ascontiguousarray(memory, float)
        given = np.concatenate([np.ascontiguousarray(x, float).T.ravel() for x in values])
        places = [memory, given, self._found, self._found[-4:]]
        return self.step(*(ctypes.c_void_p(x.ctypes.data) for x in places))
