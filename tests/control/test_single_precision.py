"""Controllers in single precision beside the same in double: warm, where goals, limits and states jump."""

import subprocess

import casadi as ca
import numpy as np
import pytest
from controllers import needs_compiler

import oc_dyn as od

H, N = 0.05, 10
MAIN = """#include <stdio.h>
#include "sf.h"
static const double x[][4] = {%s};
int main(void) {
  static sf_t self; static sf_in in; sf_out out; int i, k, status;
  sf_init(&self);
  for (k = 0; k < (int)(sizeof x / sizeof *x); ++k) {
    if (k %% %d == 0) sf_reset(&self);
    in.q_now[0] = (sf_real)x[k][0]; in.v_now[0] = (sf_real)x[k][1]; in.most[0] = (sf_real)x[k][3];
    for (i = 0; i <= %d; ++i) in.wanted[i] = (sf_real)x[k][2];
    status = sf_step(&self, &in, &out);
    printf("%%d %%.9g %%.9g\\n", status, (double)out.u[0], (double)out.objective);
  }
  return 0;
}
"""


def mass(soft):
    """One quadratic program a step for a mass: limits of its force, and of its speed, which may be exceeded at a cost
    that is small beside the price of limits of force."""
    ocp = od.Problem(N, N * H)
    q, v, u = ocp.state("q", scale=1), ocp.state("v", scale=1), ocp.control("u", lower=-5, upper=5, scale=1)
    most = ocp.parameter("most")
    ocp.next(q, q + H * v + H * H / 2 * u)
    ocp.next(v, v + H * u)
    if soft:
        ocp.limit(-most, v + H * u, most, soft=(10, 10))
    ocp.start({q: ocp.parameter("q_now"), v: ocp.parameter("v_now")})
    ocp.minimize(squares=ca.vertcat(q - ocp.varying("wanted"), 0.1 * v, 0.05 * u + (0 if soft else 0 * most)))
    ocp.minimize(terminal=ca.sumsqr(v))
    return od.mpc(ocp, method="euler", iterations=1, name="sf")


def ran(control, folder, samples, reset):
    """(steps, 3) of status, u, objective in single and in double precision, each from its own memory."""
    found = []
    rows = ",".join("{" + ",".join(f"{y:.9g}" for y in x) + "}" for x in samples)
    for precision in ("single", "double"):
        place = folder / precision
        control.codegen(place, precision=precision)
        (place / "main.c").write_text(MAIN % (rows, reset, N))
        subprocess.run(["gcc", "-std=c99", "-O1", "-o", "steps", "main.c", "sf.c", "-lm"], cwd=place, check=True)
        done = subprocess.run([place / "steps"], capture_output=True, text=True, check=True)
        found.append(np.array([[float(y) for y in line.split()] for line in done.stdout.splitlines()]))
    return found


@pytest.mark.slow
@needs_compiler
def test_a_soft_limit_that_falls(tmp_path):
    """The speed allowed falls to a fifth of what it is; the optimum brakes with all force."""
    control, q, v, samples = mass(True), 0.0, 0.3, []
    for most in [1.0] * 6 + [0.2] * 2:
        samples.append((q, v, 1.0, most))
        a = control.step({"q_now": q, "v_now": v, "wanted": 1.0, "most": most})["u"][0]
        q, v = q + H * v + H * H / 2 * a, v + H * a
    single, double = ran(control, tmp_path, samples, len(samples))
    assert np.all(double[:, 0] == 0)
    assert np.all(single[:, 0] == 0)
    assert double[-2:, 1] == pytest.approx(-5, abs=1e-6)
    assert single[:, 1] == pytest.approx(double[:, 1], abs=1e-2)
    assert single[:, 2] == pytest.approx(double[:, 2], rel=1e-2)


@pytest.mark.few(1)
@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("soft", [False, True])
def test_jumps(soft, tmp_path):
    """Steps of 200 instances that jump from a random sample to another, and stay there."""
    rng, samples = np.random.default_rng(3), []
    for _ in range(200):
        some = [(*rng.uniform(-1, 1, 3) * (1, 1.5, 1), 10 ** rng.uniform(-1, 0.5)) for _ in range(2)]
        samples += [*some, some[-1]]
    single, double = ran(mass(soft), tmp_path, samples, 3)
    assert np.all(double[:, 0] == 0)
    assert np.mean(single[:, 0] != 0) < 0.01
    assert single[:, 2] == pytest.approx(double[:, 2], rel=0.03, abs=1e-3)
    far = np.abs(single[:, 1] - double[:, 1]) > 0.1
    assert np.mean(far) < 0.01
    assert not np.any(far & (single[:, 1] * double[:, 1] < 0) & (np.abs(double[:, 1]) > 1))
