"""What the tests of generated C share: a product of each kind, and programs around them."""

import shutil
import subprocess

import numpy as np
from controllers import pendulum

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.robots import planar_arm

STRICT = ["-O1", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
LANGUAGES = {
    "gcc": ["gcc", "-std=c99"],
    "g++": ["g++", "-x", "c++", "-std=c++17"],
    "clang": ["clang", "-std=c99"],
    "clang++": ["clang++", "-x", "c++", "-std=c++17"],
}


def command(language):
    """Words of a compiler; None where it is not there, as clang or clang-14."""
    words = LANGUAGES[language]
    for name in (words[0], f"{words[0]}-14"):
        if shutil.which(name):
            return [name, *words[1:]]
    return None


def functions(folder, precision):
    robot = od.robots.planar_2r()
    od.codegen(
        [od.function(robot, x) for x in ("inverse_dynamics", "mass_matrix")], folder, name="arm", precision=precision
    )
    return ["arm.c"]


def law(folder, precision):
    made = el.generate_controller(
        mixed_law(), folder, name="arm", torque_limit=40.0, compiler="none", precision=precision
    )
    return [x.name for x in made.sources]


def predictive(folder, precision):
    controller().codegen(folder, precision=precision, points=steps(3))
    return ["arm.c"]


KINDS = {"functions": functions, "law": law, "predictive": predictive}


def mixed_law():
    """Feedback linearisation of an arm with a rigid joint between elastic ones: it has a memory."""
    inertia = {"joint1": 0.5, "joint2": 0.3, "joint3": 0.2}
    springs = {"joint1": 500, "joint3": 300}
    arm = el.elastic_robot(planar_arm(3), springs, motor_inertia=inertia, motor_damping=1.0, motor_friction=0.5)
    return el.feedback_linearization(arm, 20.0)


def controller(**options):
    ocp, tau, _, _ = pendulum(6)
    bounds = {"tau": (-200.0, 200.0)}
    return od.mpc(ocp, outputs={"tau": tau}, method="euler", name="arm", output_bounds=bounds, **options)


def steps(count):
    """What is measured in so many steps."""
    rng = np.random.default_rng(0)
    return [
        {"q_now": 0.1 * rng.normal(size=2), "v_now": 0.1 * rng.normal(size=2), "r": np.full((7, 2), 0.1)}
        for _ in range(count)
    ]


def built(folder, sources, *, flags=(), name="program", compiler="gcc"):
    """Path of a program from C sources in a folder."""
    words = [compiler, "-std=c99", *flags, "-o", name, *sources, "-lm"]
    subprocess.run(words, cwd=folder, check=True)
    return folder / name
