"""Every robot of the wheel example-robot-data: it loads, and methods that share little agree on its dynamics.

A file that holds the same robot as another one, to the last bit, is not computed again.
"""

import os
import warnings
from functools import cache

import numpy as np
import pytest
from samples import random_ports, relative
from urdf_files import example_robots

import oc_dyn as od
from oc_dyn.errors import ModelError, ModelWarning

# file -> why it is no robot, or has no forward dynamics
REFUSED = {"ur3.urdf": "no link", "alex_psyonic_hands.urdf": "mimics joint 'index_q1', which does not exist"}
MASSLESS = {"romeo.urdf": ("LHand", "RHand"), "romeo_laas_small.urdf": ("l_gripper_joint", "r_gripper_joint")}
TOLERANCE = 1e-9
LARGE = 16  # velocities; the suite takes minutes with all robots above


FILES = sorted(example_robots(), key=lambda f: f.name not in REFUSED)  # a refused one first, which is in the sample
EVERY = [pytest.param(f, id=f"{f.parents[1].name}/{f.name}") for f in FILES]
pytestmark = pytest.mark.skipif(not FILES, reason="example-robot-data is not installed")


def load(file, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return od.load_urdf(file, **options)


def content(robot):
    """Text that is the same for robots whose dynamics are, whatever their links and joints are called."""
    numbers = [robot.gravity]
    for b in robot.bodies:
        j = b.joint
        rule = (j.mimic.multiplier, j.mimic.offset) if j.mimic else ()
        numbers += [b.inertia.parameters, b.rotation, b.translation, j.axis, (b.parent, j.q_index, j.armature, *rule)]
    kinds = [b.joint.kind.replace("continuous", "revolute") for b in robot.bodies]
    return repr(kinds) + repr([np.asarray(x).tolist() for x in numbers])


@cache
def robot_of(file):
    robot = load(file)
    return robot if robot.nv else load(file, floating_base=True)  # a body in the air


@cache
def first_of():
    """{file: the first file that holds the same robot}."""
    seen = {}
    return {f: seen.setdefault(content(robot_of(f)), f) for f in FILES if f.name not in REFUSED}


@pytest.mark.sample(1)
@pytest.mark.parametrize("file", EVERY)
def test_every_file_is_a_robot_or_is_refused_for_a_reason(file):
    if file.name in REFUSED:
        with pytest.raises(ModelError, match=REFUSED[file.name]):
            load(file)
    else:
        assert load(file).frames


@pytest.mark.slow  # loads them all
def test_the_files_are_many():
    assert len(FILES) >= 60
    assert len(set(first_of().values())) >= 45


@pytest.mark.few(30)
@pytest.mark.slow  # all of them together
@pytest.mark.parametrize("file", EVERY)
def test_dynamics_order_2_and_partials(file):
    if first_of().get(file) != file:
        return  # refused, or computed for another file
    robot = robot_of(file)
    if robot.nv > LARGE and not os.environ.get("OC_DYN_ALL"):
        pytest.skip(f"{robot.nv} velocities: set OC_DYN_ALL=1 for robots of more than {LARGE}")
    f = od.function(robot, "inverse_dynamics", order=2)
    x = random_ports(f, robot, seed=1)
    tau, other = f(**x), od.function(robot, "inverse_dynamics", order=2, method="recursive_spatial")(**x)
    for port in ("tau", "dtau", "d2tau"):
        assert relative(other[port], tau[port]) < TOLERANCE, port

    at = {k: x[k] for k in ("q", "v", "dv")}
    ours = od.function(robot, "inverse_dynamics_partials")(**at)
    theirs = od.function(robot, "inverse_dynamics_partials", method="ad")(**at)
    for port in ours:
        assert relative(ours[port], theirs[port]) < TOLERANCE, port

    massless = MASSLESS.get(file.name)
    if massless:
        with pytest.raises(ModelError) as caught:
            od.function(robot, "forward_dynamics")
        assert len(caught.value.problems) == len(massless)
        assert all(f"joint {j!r} moves no inertia" in str(caught.value) for j in massless)
        robot = robot.locked(dict.fromkeys(massless, 0.0))  # as the message says
        f = od.function(robot, "inverse_dynamics")
        x = random_ports(f, robot, seed=1)
        tau = f(**x)
    x["dv"] = od.function(robot, "forward_dynamics")(q=x["q"], v=x["v"], tau=tau["tau"])["dv"]
    assert relative(f(**x)["tau"], tau["tau"]) < TOLERANCE
