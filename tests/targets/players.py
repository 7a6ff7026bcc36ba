"""Players of motions that tests share: small motions of every kind, and a compiled player that Python can call."""

import ctypes
import subprocess

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.codegen.build import find_compiler
from oc_dyn.robots import planar_arm

try:
    COMPILER = find_compiler()
except od.SolveError:
    COMPILER = None
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")
STRICT = ("-std=c99", "-O1", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")


def smooth(n=3, pieces=6, degree=6, continuity=5, robot=None, seed=1):
    """Trajectory of random pieces that are as smooth as said."""
    rng = np.random.default_rng(seed)
    t = 0.7 + np.cumsum([0.0, *rng.uniform(0.05, 0.4, pieces)])
    table = rng.uniform(-1, 1, (pieces, degree + 1, n)) * 3.0 ** np.arange(degree + 1)[:, None]
    for k in range(1, pieces):
        end = od.Trajectory(t[k - 1 : k + 1], table[k - 1 : k], joints="abc"[:n], units=["rad"] * n)
        table[k, : continuity + 1] = [x[-1] for x in end.derivatives[: continuity + 1]]
    joints = robot.coordinate_names if robot else tuple("abc"[:n])
    return od.Trajectory(t, table, joints=joints, units=["rad"] * n, robot=robot)


def elastic_plan(sigma=False):
    """ElasticPlan along a motion that was not planned."""
    arm = planar_arm(3)
    if sigma:
        of, jets = el.elastic_robot(arm, el.VariableSpring(), motor_inertia=0.3), np.array([400.0, 300.0, 200.0])
    else:
        of, jets = el.elastic_robot(arm, [500.0, 400.0, 300.0], motor_inertia=[0.5, 0.3, 0.2]), None
    return el.ElasticPlan(of, smooth(robot=arm), {}, 1.0, {}, jets)


def along_path(path="points", **options):
    """PathMotion of a planar arm."""
    arm, s = planar_arm(3), ca.SX.sym("s")
    limits = od.Limits(arm.coordinate_names, v=2.0, dv=10.0, d2v=200.0)
    points = np.array([[0, 0, 0], [0.5, 0.2, -0.3], [0.8, 0.9, 0.1], [1, 0.5, -0.5]])
    function = ca.Function("path", [s], [ca.vertcat(ca.sin(s), s**2, ca.cos(2 * s))])
    return od.plan_along_path(
        arm, points if path == "points" else function, limits=limits, nodes=20, check="off", **options
    )


def pendulum_solution(method="hermite_simpson"):
    """Solution of a pendulum's swing, with states a, w and the control u."""
    ocp = od.Problem(8, 2.0)
    a, w, u = ocp.state("a"), ocp.state("w"), ocp.control("u", lower=-3, upper=3)
    ocp.rate(a, w)
    ocp.rate(w, u - 2 * ca.sin(a))
    ocp.start({a: 0, w: 0})
    ocp.goal({a: 1.5, w: 0})
    ocp.minimize(integral=u**2)
    return ocp.solve(method=method, check="off")


class Compiled:
    """A generated player as a library. step(t) -> (status, {output: array}, state)."""

    def __init__(self, code, precision="double"):
        real = {"double": ctypes.c_double, "single": ctypes.c_float}[precision]
        texts = {x.name: x.read_text() for x in (*code.sources, code.header)}
        lines = [f'#include "{code.name}.h"', f"int size_of_instance(void) {{ return (int)sizeof({code.name}_t); }}"]
        texts["size.c"] = "\n".join(lines) + "\n"
        self.code, folder = code, code.folder / "library"
        folder.mkdir(exist_ok=True)
        for file, text in texts.items():
            (folder / file).write_text(text)
        sources = [x for x in texts if x.endswith(".c")]
        command = [*COMPILER, "-shared", "-fPIC", "-O1", "-ffp-contract=off", "-o", "player.so", *sources, "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        self.library = ctypes.CDLL(str(folder / "player.so"))
        members = [(n, real * size) for n, size in code.outputs.items()] + [("state", ctypes.c_int)]
        self.Out = type("Out", (ctypes.Structure,), {"_fields_": members})
        self.instance = self.new()

    def new(self):
        """An instance of its own."""
        memory = ctypes.create_string_buffer(self.library.size_of_instance())
        self.call("init", memory)
        return memory

    def call(self, what, *arguments):
        return getattr(self.library, f"{self.code.name}_{what}")(*arguments)

    def step(self, t, instance=None):
        out, time = self.Out(), ctypes.c_double(t)
        status = self.call(
            "step", self.instance if instance is None else instance, ctypes.byref(time), ctypes.byref(out)
        )
        return status, {n: np.array(getattr(out, n)) for n in self.code.outputs}, out.state

    def sample(self, times):
        """{output: (K, n)}, every status being 0."""
        rows = []
        for t in times:
            status, row, _ = self.step(t)
            assert status == 0
            rows.append(row)
        return {n: np.array([row[n] for row in rows]) for n in self.code.outputs}
