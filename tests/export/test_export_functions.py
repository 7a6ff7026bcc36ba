"""Functions of robots as files of CasADi: read by CasADi alone, in another program too; the manifest; bad files."""

import json
import subprocess
import sys

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import FileError, ShapeError, UnknownName


@pytest.fixture(scope="module")
def arm():
    return od.robots.by_name("planar_2r")


def test_casadi_alone_reads_the_files(arm, tmp_path):
    od.export.functions(arm, tmp_path / "model", {"inverse_dynamics": "inverse_dynamics"})
    script = (
        "import casadi as ca, sys; f = ca.Function.load(sys.argv[1]); assert 'oc_dyn' not in sys.modules;"
        "print(f.name_in(), f.name_out(), *f(q=[0.1, 0.2], v=[0.3, 0.4], dv=[0.5, 0.6])['tau'].full().ravel())"
    )
    file = tmp_path / "model" / "inverse_dynamics.casadi"
    command = [sys.executable, "-c", script, file]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    f = od.function(arm, "inverse_dynamics")
    names, _, rest = told.stdout.partition("] [")
    assert eval(names + "]") == f.name_in()
    numbers = [float(x) for x in rest.partition("]")[2].split()]
    np.testing.assert_allclose(numbers, f(q=[0.1, 0.2], v=[0.3, 0.4], dv=[0.5, 0.6])["tau"].full().ravel(), rtol=1e-14)


def test_the_folder_comes_back_with_names_units_and_values(arm, tmp_path):
    asked = {"M": "mass_matrix", "tip": {"quantity": "frame_pose", "frame": arm.bodies[-1].name, "order": 1}}
    told = od.export.functions(arm, tmp_path, asked, ode=False)
    assert told == json.loads((tmp_path / "manifest.json").read_text())
    assert told["robot"] == arm.name
    assert told["coordinates"] == list(arm.coordinate_names)
    assert told["functions"]["tip"]["made_by"]["order"] == 1
    assert told["functions"]["M"]["inputs"][0]["shape"] == [2, 1]
    assert told["functions"]["M"]["inputs"][0]["unit"]
    loaded = od.export.load_functions(tmp_path)
    assert set(loaded) == {"M", "tip"}
    q = [0.3, -0.4]
    np.testing.assert_array_equal(loaded["M"](q=q)["M"].full(), od.function(arm, "mass_matrix")(q=q)["M"].full())
    assert loaded["M"].name() == "M"


@pytest.mark.parametrize("name", ["planar_2r", "aerial_manipulator"])
def test_the_ode_moves_as_forward_dynamics(name, tmp_path):
    robot = od.robots.by_name(name)
    od.export.functions(robot, tmp_path, ["forward_dynamics"])
    f = ca.Function.load(str(tmp_path / "ode.casadi"))
    rng = np.random.default_rng(0)
    q, (v, u) = robot.random_configuration(0), rng.normal(size=(2, robot.nv))
    rate = f(x=np.r_[q, v], u=u)["xdot"].full().ravel()
    dv = rate[robot.nq :]  # inverse dynamics, an algorithm of its own, gives the torques back
    tau = od.function(robot, "inverse_dynamics")(q=q, v=v, dv=dv)["tau"].full().ravel()
    np.testing.assert_allclose(tau, u, atol=1e-10)
    h = 1e-6
    ahead, behind = (robot.integrate(q, s * h * v) for s in (1, -1))
    np.testing.assert_allclose((ahead - behind) / (2 * h), rate[: robot.nq], atol=1e-8)


def test_bad_questions_are_named(arm, tmp_path):
    with pytest.raises(UnknownName, match="mass_matrix"):
        od.export.functions(arm, tmp_path / "x", ["mass_matrx"])
    with pytest.raises(ShapeError, match="has no quantity"):
        od.export.functions(arm, tmp_path / "x", {"a": {"order": 1}})
    with pytest.raises(ShapeError, match="cannot name a Function"):
        od.export.functions(arm, tmp_path / "x", {"a b": "mass_matrix"})
    with pytest.raises(ShapeError, match="no quantity is asked for"):
        od.export.functions(arm, tmp_path / "x", [])
    with pytest.raises(ShapeError, match="is called 'ode'"):
        od.export.functions(arm, tmp_path / "x", {"ode": "mass_matrix"})
    assert not (tmp_path / "x").exists()


def test_bad_folders_are_named(arm, tmp_path):
    od.export.functions(arm, tmp_path, ["mass_matrix"], ode=False)
    file, manifest = tmp_path / "mass_matrix.casadi", tmp_path / "manifest.json"
    whole, told = file.read_bytes(), manifest.read_text()
    file.write_bytes(whole[:50])
    with pytest.raises(FileError, match="cannot read it"):
        od.export.load_functions(tmp_path)
    file.write_bytes(whole)
    manifest.write_text(told.replace('"name": "M"', '"name": "N"'))
    with pytest.raises(FileError, match="its outputs are M, which the manifest does not say"):
        od.export.load_functions(tmp_path)
    manifest.write_text("{}")
    with pytest.raises(FileError, match="is no manifest of functions"):
        od.export.load_functions(tmp_path)
    manifest.write_text(told.replace("mass_matrix", "../mass_matrix"))
    with pytest.raises(ShapeError, match="cannot name a Function"):
        od.export.load_functions(tmp_path)
