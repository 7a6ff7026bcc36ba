"""The problems run, pass their own checks, write what they say, and notice when something is wrong."""

import csv
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from clones import clone

import oc_dyn as od

_FOLDER = Path(__file__).resolve().parents[1] / "problems"
_FILES = {
    "double_pendulum_swing_up": {"swing_up.csv", "swing_up.png", "convergence.csv", "convergence.png", "manifest.json"},
    "link_length_design": {"steps.csv", "design.png", "manifest.json"},
    "panda_third_order": {"torques.csv", "torques.png", "joint_trajectory.png", "manifest.json"},
    "panda_identification": {"parameters.csv", "prediction.png", "exciting_motion.png", "manifest.json"},
    "aerial_manipulator": {"efforts.csv", "efforts.png", "reference.png", "round_trip.png", "manifest.json"},
    "sea_3r_table": {"table.csv", "errors.png", "manifest.json"},
    "sea_2r_tracking": {
        *("laboratory.csv", "laboratory.png", "laboratory.gif", "ideal.png", "limits.png", "manifest.json"),
    },
    "sea_arm_tracking": {
        *("laboratory.csv", "laboratory.png", "laboratory.gif", "ideal.png", "stiffness_errors.png", "manifest.json"),
    },
    "stewart_sea": {"forces.csv", "forces.png", "ideal.png", "laboratory.png", "manifest.json"},
    "panda_pick_and_place": {"motion.csv", "motion.gif", "motion.png", "tool.png", "manifest.json"},
    "aerial_manipulator_tracking": {"passive.csv", "passive.gif", "tracking.png", "manifest.json"},
    "quadruped_jump": {"jump.csv", "jump.gif", "jump.png", "manifest.json"},
    "quadruped_knee_linkage": {"jump.csv", "jump.gif", "jump.png", "manifest.json"},
    "quadruped_sea_hop": {"hop.csv", "hop.gif", "hop.png", "manifest.json"},
    "panda_path_following": {"motion.csv", "motion.gif", "path.png", "manifest.json"},
    "panda_point_to_point": {"manifest.json", "motion.csv", "motion.gif", "times.png"},
    "opti_flat_sea_motion": {"manifest.json", "motion.csv", "motion.png"},
    "opti_panda_torque_rate": {"manifest.json", "motion.csv", "motion.png"},
    "panda_nmpc": {"fast.csv", "loop.csv", "loop.gif", "loop.png", "manifest.json"},
    "cart_pole_swing_up": {"swing_up.csv", "swing_up.png", "swing_up.gif", "manifest.json"},
    "sea_identification": {"parameters.csv", "identification.png", "manifest.json"},
    "sea_throw": {"throw.csv", "throw.png", "throw.gif", "manifest.json"},
    "leg_springs": {"cycles.csv", "leg.png", "manifest.json"},
    "vsa_stiffness_plan": {"plan.csv", "plan.png", "manifest.json"},
    "sea_codegen_controller": {"times.csv", "times.png", "manifest.json"},
    "panda_shelf": {
        *("there.csv", "there.png", "there.gif", "back.csv", "back.png", "back.gif", "manifest.json"),
    },
    "two_arms_handover": {
        *("left.csv", "left.png", "left.gif", "right.csv", "right.png", "right.gif", "manifest.json"),
    },
    "moving_obstacle_mpc": {"loop.csv", "loop.gif", "loop.png", "manifest.json"},
    "quadruped_mpc": {"trot.csv", "loops.png", "stand.gif", "manifest.json"},
    "sea_nmpc": {"jump.csv", "laboratory.csv", "loops.png", "manifest.json"},
}
_COMPILES = ("sea_codegen_controller", "panda_nmpc", "moving_obstacle_mpc", "quadruped_mpc", "sea_nmpc")


def load(name):
    spec = importlib.util.spec_from_file_location(name, _FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return dict(zip(header, np.array(rows, float).T, strict=True))


@pytest.mark.sample("link_length_design")
@pytest.mark.parametrize("name", list(_FILES))
def test_writes_what_it_should(name, tmp_path):
    if name in _COMPILES and shutil.which("gcc") is None:
        pytest.skip("needs a C compiler")
    with clone(tmp_path / "clone") as quick:
        assert load(name).main(["--quick", "--quiet"]) == 0
    out = quick / name
    assert {p.name for p in out.iterdir()} == _FILES[name]
    for path in out.glob("*.png"):
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        assert path.stat().st_size > 10_000
    facts = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert facts["passed"]
    assert len(facts["checks"]) > 10
    assert all(check["passed"] for check in facts["checks"].values())
    assert facts["command"].startswith(f"python problems/{name}.py --quick")
    assert str(out.parent) not in json.dumps(facts)
    globals().get(f"check_{name}", lambda out: None)(out)


def check_panda_third_order(out):
    columns = table(out / "torques.csv")
    t = columns["t [s]"]
    assert (t[0], t[-1], len(columns)) == (0, 5, 1 + 7 + 4 * 7)
    at_one = np.argmin(np.abs(t - 1))
    second = [columns[f"d2Q{i} [Nm/s2]"][at_one] for i in range(1, 8)]
    assert np.allclose(second, (-189.404, -180.875, 196.772, -72.037, 22.913, -42.777, 2.084), atol=6e-4)
    # the integral of the derivative is the torque, here of joint 2 by Simpson's rule
    rate, step = columns["dQ2 [Nm/s]"], t[1] - t[0]
    integral = step / 3 * (rate[0] + 4 * rate[1:-1:2].sum() + 2 * rate[2:-1:2].sum() + rate[-1])
    torque = columns["Q2 [Nm]"]
    assert integral == pytest.approx(torque[-1] - torque[0], rel=1e-3)


def check_aerial_manipulator(out):
    columns = table(out / "efforts.csv")
    assert len(columns) == 1 + 13 + 6 + 6 * 12 + 6
    thrust = np.array([columns[f"thrust{i} [N]"] for i in range(1, 7)])
    wrench = [columns[f"tau wrench_{c} [{'Nm' if c[0] == 'm' else 'N'}]"] for c in ("mx", "my", "mz", "fx", "fy", "fz")]
    assert np.allclose(od.robots.propellers() @ thrust, wrench, atol=1e-5)
    assert thrust.min() > 0
    assert all(columns[f"round trip {k}"].max() < 1e-8 for k in range(6))
    robot = od.robots.aerial_manipulator()
    assert np.ptp(columns["z [m]"]) == 0
    assert np.hypot(columns["x [m]"], columns["y [m]"]) == pytest.approx(0.8)
    # on the whole the lift carries the weight: the circle is level
    assert np.mean(columns["tau wrench_fz [N]"]) == pytest.approx(9.81 * robot.total_mass, rel=0.02)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "name, wrong",
    [
        ("panda_third_order", {"pinned": ((0.0,) * 7,) * 4}),
        ("aerial_manipulator", {"bound": 1e-13}),
        ("sea_2r_tracking", {"coupling": 0.03}),
        ("sea_throw", {"motor_speed": (40.0, 40.0)}),
    ],
)
def test_notices_and_tells(name, wrong, tmp_path, capsys):
    assert load(name).main(["--quick", "--out", str(tmp_path)], **wrong) == 1
    assert re.search("IS NOT (below|above)|DOES NOT", capsys.readouterr().out)
    assert json.loads((tmp_path / "manifest.json").read_text())["passed"] is False


_IMPOSSIBLE = [  # settings, and what the refusal names
    ("cart_pole_swing_up", "track=0.5", "outside its bounds -0.5 to 0.5"),
    ("panda_path_following", "shares=(1.0, 0.3, 0.1, 0.0)", "0 of the limits of dtau"),
    ("panda_path_following", "way=((0,0,0,-1,0,1,0),(0,0,0,1,0,1,0),(1,0,0,-1,0,1,0))", "outside its limits -3.07"),
    ("panda_point_to_point", "goal=(1.5, 0.6, -0.8, 0.5, 0.9, 2.4, -0.6)", "outside its limits -3.0718 to -0.0698"),
    ("opti_flat_sea_motion", "limits=((10.0, 30.0), (4.0, 4.0), (0.2, 0.2))", "for holding still, over its limit 10"),
    ("opti_panda_torque_rate", "nodes=0", "nodes"),
    ("sea_throw", "motor_torque=(10.0, 30.0)", "for holding still, over its limit 10"),
    ("vsa_stiffness_plan", "start=2.0", "outside its range -3.2 to 1.6"),
    ("panda_pick_and_place", "load=19.0", "at rest with the load: tau of joint 'panda_joint4' is"),
    ("quadruped_jump", "hip=1.5", "q of joint 'LF_kfe' is -3, outside its limits -2.44 to -0.36"),
    ("quadruped_jump", "effort=0.25", "tau of joint 'LF_kfe' is 43.1304, over its limit 37.5"),
    ("quadruped_jump", "friction=0.0", "the ground cannot push the robot ahead"),
    ("quadruped_knee_linkage", "crank=0.9", "q of joint 'LF_drive' is 0.9, outside its limits -0.64 to 0.64"),
    ("quadruped_knee_linkage", "effort=0.25", "tau of joint 'LF_drive' is"),
    ("quadruped_sea_hop", "hip=1.5", "q of joint 'LF_kfe' is -3, outside its limits -2.5 to -0.3"),
    ("quadruped_sea_hop", "limits=(30.0, 14.0, 0.4)", "over its limit 30"),
    ("quadruped_sea_hop", "friction=0.0", "the ground cannot push the robot ahead"),
    ("aerial_manipulator_tracking", "thrust=8.0", "hovering takes 8.685 N of a propeller, over its limit thrust = 8 N"),
    ("panda_nmpc", "effort=0.15", "at rest: tau of joint 'panda_joint4' is 15.4263, over its limit 13.05"),
    ("panda_pick_and_place", "place=(0.45, 0.9, 0.25)", "'panda_link8' cannot get there"),
    ("panda_pick_and_place", "pick=(0.55, -0.05, 0.25)", "inside the ball"),
    ("panda_shelf", "load=(-0.03, 0.22, 1.0)", "Cylinder: radius is -0.03, expected a finite length"),
    ("two_arms_handover", "load=(-0.025, 0.2, 0.6)", "Capsule: radius is -0.025, expected a finite length"),
    ("stewart_sea", "stiffness=0.0", "stiffness is 0.0, expected a positive number"),
    ("moving_obstacle_mpc", "links=('a', 'b', 'c', 'd')", "the scene has no pair of shapes to keep apart"),
]


@pytest.mark.sample("cart_pole_swing_up-track=0.5-outside its bounds -0.5 to 0.5")
@pytest.mark.parametrize("name, setting, said", _IMPOSSIBLE)
def test_what_cannot_be_is_refused_before_solving(name, setting, said, tmp_path, capsys):
    assert load(name).main(["--quick", "--quiet", "--out", str(tmp_path), "--set", setting]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.few(8)
@pytest.mark.sample(1)
@pytest.mark.parametrize("name", list(_FILES))
def test_as_a_process(name):
    words = [sys.executable, str(_FOLDER / f"{name}.py"), "--help"]
    done = subprocess.run(
        words, capture_output=True, text=True, cwd=_FOLDER.parent, env={"PYTHONPATH": str(_FOLDER.parent), "PATH": ""}
    )
    assert done.returncode == 0, done.stderr
    assert "--quick" in done.stdout, done.stderr
