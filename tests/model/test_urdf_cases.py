"""The files of data/urdf_cases: what must load, with which numbers, and what must be refused, with which words.

The numbers come from an independent numpy program (link Jacobians, finite differences of the potential and of M);
those of case 04 from Pinocchio 4.1.0.
"""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from effort import counting

import oc_dyn as od
import oc_dyn.model.urdf  # so that what it imports counts for no text
from oc_dyn.errors import ModelError, ModelWarning

FOLDER = Path(__file__).parents[1] / "data" / "urdf_cases"
Q, V, A = (0.3, -0.4, 0.5, -0.2), (0.7, -0.6, 0.2, 0.9), (-0.5, 0.8, 1.1, -0.3)
INF = np.inf


def path(number):
    return next(FOLDER.glob(f"{number}_*.urdf"))


def load(number, **options):
    """The robot of a case, which must load without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return od.load_urdf(path(number), **options)


def tau_of(robot, q, v, dv):
    return np.array(od.function(robot, "inverse_dynamics")(q=q, v=v, dv=dv)["tau"]).ravel()


VALID = {  # case: names, kinds, total mass, tau, g, M
    "01": (["spin", "elbow"], ["continuous", "revolute"], 3.5,
           [-0.119603747, -3.314328748], [0, -3.388353132], np.diag([0.153576808, 0.12375])),
    "02": (["slide", "hinge"], ["prismatic", "continuous"], 5.0,
           [-2.850815759, -1.172665376], [0, -1.528077575], [[5, -0.368424398], [-0.368424398, 0.214]]),
    "05": (["j1", "j2"], ["revolute", "revolute"], 7.1,
           [-6.925486768, 0.137227424], [-6.478252069, 0.240551583],
           [[1.491115931, 0.422986771], [0.422986771, 0.18633761]]),
    "06": (["jaw_a_slide"], ["prismatic"], 0.5, [-0.1375], [0], [[0.275]]),
    "07": (["ja", "jb"], ["revolute", "revolute"], 1.5, [-0.0167, 0.0003], [0, 0], [[0.035, 0.001], [0.001, 0.001]]),
    "09": (["roll", "pitch"], ["revolute", "revolute"], 3.0,
           [-3.194654765, -0.939358231], [-3.061386522, -1.039957544],
           [[0.355764186, 0.043180582], [0.043180582, 0.152418262]]),
    "12": (["hinge"], ["revolute"], 8.0, [-0.865], [0], [[1.73]]),
    "22": (["m_joint"], ["revolute"], 1.8, [-3.419866345], [-3.373866345], [[0.092]]),
    "23": (["Gelenk_α", "関節2"], ["revolute", "revolute"], 1.0,
           [-0.373381653, 0.0004], [-0.362381653, 0], np.diag([0.022, 0.0005])),
}  # fmt: skip


@pytest.mark.parametrize("number", VALID)
@pytest.mark.filterwarnings("ignore::oc_dyn.errors.ModelWarning")
def test_valid_case(number):
    names, kinds, mass, tau, g, M = VALID[number]
    robot = od.load_urdf(path(number))
    n = len(names)
    assert [j.name for j in robot.joints] == names
    assert [j.kind for j in robot.joints] == kinds
    assert robot.nq == robot.nv == n
    assert robot.total_mass == pytest.approx(mass, abs=1e-12)
    q, v, a = np.array(Q[:n]), np.array(V[:n]), np.array(A[:n])
    np.testing.assert_allclose(tau_of(robot, q, v, a), tau, atol=1e-8, rtol=0)
    np.testing.assert_allclose(tau_of(robot, q, 0 * v, 0 * a), g, atol=1e-8, rtol=0)
    np.testing.assert_allclose(np.array(od.function(robot, "mass_matrix")(q=q)["M"]), M, atol=1e-8, rtol=0)


def test_01_limits_of_a_continuous_joint():
    spin, elbow = load("01").joints
    assert (spin.lower, spin.upper, spin.effort, spin.velocity) == (-INF, INF, 20, 4)
    assert (elbow.lower, elbow.upper, elbow.effort, elbow.velocity) == (-1.2, 1.2, 15, 3)


def test_04_floating_joint():
    robot = load("04")
    assert (robot.nq, robot.nv) == (8, 7)
    assert [(j.name, j.kind) for j in robot.joints] == [("drift", "free"), ("shoulder", "revolute")]
    assert robot.total_mass == pytest.approx(6.8)
    linear_first = [3, 4, 5, 0, 1, 2, 6]
    q = robot.neutral()
    M = np.array(od.function(robot, "mass_matrix")(q=q)["M"])[np.ix_(linear_first, linear_first)]
    expected = [
        [6.8, 0, 0, 0, 0.46, -0.24, 0],
        [0, 6.8, 0, -0.46, 0, 0, 0],
        [0, 0, 6.8, 0.24, 0, 0, 0.16],
        [0, -0.46, 0.24, 0.22, 0, 0, 0.059],
        [0.46, 0, 0, 0, 0.128, -0.048, 0],
        [-0.24, 0, 0, 0, -0.048, 0.133, 0],
        [0, 0, 0.16, 0.059, 0, 0, 0.043],
    ]
    np.testing.assert_allclose(M, expected, atol=1e-8, rtol=0)
    tau = tau_of(robot, q, np.zeros(7), np.zeros(7))
    np.testing.assert_allclose(tau[linear_first], [0, 0, 66.708, 2.3544, 0, 0, 1.5696], atol=1e-8, rtol=0)
    assert load("04", floating_base=True).nv == 7  # six velocities of the base once, not twice


def test_05_lumped_bodies():
    robot = load("05")
    upper, lower = robot.bodies
    expected = {
        upper: (4.2, (0.005714286, 0.002857143, 0.257142857),
                (0.08814158, 0.089628571, 0.00965842, -0.000171429, -0.003007836, -0.001714286)),
        lower: (2.9, (0.013166816, 0, 0.215925437),
                (0.049058607, 0.050625849, 0.005167241, 0, -0.006043959, 0)),
    }  # fmt: skip
    for body, (mass, com, tensor) in expected.items():
        T = body.inertia.tensor_com
        assert body.inertia.mass == pytest.approx(mass, abs=1e-12)
        np.testing.assert_allclose(body.inertia.com, com, atol=1e-9)
        np.testing.assert_allclose([*np.diag(T), T[0, 1], T[0, 2], T[1, 2]], tensor, atol=1e-9)
    assert [robot.frame(name).body for name in ("stand", "upper", "gearbox", "lower", "flange", "drill")] == [
        0, 1, 1, 2, 2, 2,
    ]  # fmt: skip
    assert load("05", floating_base=True).total_mass == pytest.approx(37.1)  # the stand counts where it moves


def test_06_mimic_joint_follows():
    robot = load("06")
    (follower,) = robot.mimics
    assert (follower.name, follower.q_index) == ("jaw_b_slide", 0)
    assert (follower.mimic.joint, follower.mimic.multiplier, follower.mimic.offset) == ("jaw_a_slide", -0.5, 0.01)


def test_07_frames_without_mass():
    robot = load("07")
    assert list(robot.frames) == ["origin_mark", "base", "link_a", "midpoint", "link_b", "tip"]
    assert robot.root == "origin_mark"
    assert [b.inertia.mass for b in robot.bodies] == [1.0, 0.5]


def test_09_rotated_inertial():
    roll, pitch = load("09").bodies
    np.testing.assert_allclose(roll.inertia.tensor_com, np.diag([0.20, 0.10, 0.25]), atol=1e-15)
    T = pitch.inertia.tensor_com
    np.testing.assert_allclose(pitch.inertia.com, [0.1, -0.05, 0.2], atol=1e-12)
    expected = [0.053407782, 0.052418262, 0.044173957, -0.003785581, -0.003767686, 0.007731238]
    np.testing.assert_allclose([*np.diag(T), T[0, 1], T[0, 2], T[1, 2]], expected, atol=1e-9)


def test_12_revolute_without_limit():
    with pytest.warns(ModelWarning, match="'hinge'") as seen:
        robot = od.load_urdf(path("12"))
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert (robot.joints[0].lower, robot.joints[0].upper) == (-INF, INF)
    assert any("'hinge'" in line for line in robot.report)
    with pytest.raises(ModelError, match="'hinge'"):
        od.load_urdf(path("12"), strict=True)


def test_22_no_mesh_is_touched(monkeypatch):
    opened = []
    sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
    load("22")
    assert not [name for name in opened if name.endswith((".dae", ".stl", ".obj"))]


@pytest.mark.sample("C")
@pytest.mark.parametrize("locale", ["C", "POSIX"])
def test_23_any_locale(locale):
    code = (
        "import sys, oc_dyn as od; r = od.load_urdf(sys.argv[1]); t = od.load_urdf(open(sys.argv[1], 'rb').read());"
        "print(ascii([j.name for j in r.joints]), ascii(t.name), list(map(ascii, r.frames))[2])"
    )
    env = {**os.environ, "LC_ALL": locale, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    env["PYTHONPATH"] = os.pathsep.join(p for p in sys.path if p)
    done = subprocess.run([sys.executable, "-c", code, path("23")], env=env, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.strip() == f"{['Gelenk_α', '関節2']!a} {'Prüfarm'!a} {'手先'!a}"


BROKEN = {  # case: what the error must say
    "11": ["joint 'lost'", "axis", "zero", "line 13"],
    "14": ["joint 'same'", "more than once", "13", "17"],
    "15": ["'left_root'", "'right_root'"],
    "17": ["loop", "r1", "r2", "r3"],
    "19": ["joint 'mount'", "'antena'", "did you mean 'antenna'", "line 9"],
    "21": ["run xacro first", "line 4"],
    "25": ["link 'd_arm'", "xyz=", "0 0 0,15", "mass value=", "1,25", "ixx=", "iyy=", "izz=", "decimal comma",
           "joint 'd_joint'", "lower=", "-1,5", "upper=", "line 6", "line 11"],
}  # fmt: skip


@pytest.mark.parametrize("number", BROKEN)
@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("floating_base", [False, True])
def test_broken_case(number, strict, floating_base, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ModelError) as caught, counting() as calls:
            od.load_urdf(path(number), strict=strict, floating_base=floating_base)
    assert calls() < 10_000
    text = str(caught.value)
    assert path(number).name in text
    assert [word for word in BROKEN[number] if word not in text] == []
    assert capfd.readouterr() == ("", "")


def test_11_only_the_moving_joint_is_blamed():
    with pytest.raises(ModelError) as caught:
        od.load_urdf(path("11"))
    assert len(caught.value.problems) == 1
    assert "glue" not in str(caught.value)


def test_25_lists_every_number():
    with pytest.raises(ModelError) as caught:
        od.load_urdf(path("25"))
    assert len(caught.value.problems) == 7
