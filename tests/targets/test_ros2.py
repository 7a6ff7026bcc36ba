"""od.ros2_controller: C++17 in the shape of ros2_control that runs with a stand-in and gives the law's torques."""

import shutil
import subprocess

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import elastic as el
from oc_dyn.robots import planar_arm

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("g++") is None or shutil.which("gcc") is None, reason="needs gcc and g++"),
]
STRICT = ["-O1", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
MAIN = """
#include <cstdio>
#include <cmath>
#include "NAME_ros2.hpp"
using namespace NAME_ros2;
int main() {
  Controller controller;
  if (controller.on_init() != controller_interface::CallbackReturn::SUCCESS) return 1;
  rclcpp_lifecycle::State state;
  if (controller.on_activate(state) == controller_interface::CallbackReturn::SUCCESS) return 2;  // no interfaces yet
  const auto states = controller.state_interface_configuration().names;
  const auto commands = controller.command_interface_configuration().names;
  std::vector<double> measured(states.size()), effort(commands.size(), -1.0);
  std::vector<hardware_interface::LoanedStateInterface> read;
  std::vector<hardware_interface::LoanedCommandInterface> written;
  for (std::size_t k = 0; k < states.size(); ++k) {
    std::printf("%s\\n", states[k].c_str());
    read.emplace_back(states[k], &measured[k]);
  }
  for (std::size_t k = 0; k < commands.size(); ++k) {
    std::printf("%s\\n", commands[k].c_str());
    written.emplace_back(commands[k], &effort[k]);
  }
  controller.assign_interfaces(std::move(written), std::move(read));
  if (controller.on_configure(state) != controller_interface::CallbackReturn::SUCCESS) return 3;
  if (controller.on_activate(state) != controller_interface::CallbackReturn::SUCCESS) return 4;
  for (int step = 0; step < 3; ++step) {
    for (std::size_t k = 0; k < measured.size(); ++k) measured[k] = 0.1 * std::sin(1.0 + static_cast<double>(k));
    FILL
    if (step == 1) measured[1] = NAN;
    const auto result = controller.update(rclcpp::Time(step), rclcpp::Duration(1000000));
    if (result != controller_interface::return_type::OK) return 5;
    for (double x : effort) std::printf("%.17g ", x);
    std::printf("%d %zu\\n", controller.status(), controller.failures());
  }
  return controller.on_deactivate(state) == controller_interface::CallbackReturn::SUCCESS ? 0 : 6;
}
"""


def built_and_run(code, fill, tmp_path):
    """Lines that the program prints."""
    (tmp_path / "main.cpp").write_text(MAIN.replace("NAME", code.name).replace("FILL", fill))
    include = [f"-I{code.folder}", f"-I{code.stub}"]
    objects = []
    for k, source in enumerate((*code.sources, tmp_path / "main.cpp")):
        compiler = ["gcc", "-std=c99"] if source.suffix == ".c" else ["g++", "-std=c++17"]
        objects.append(str(tmp_path / f"{k}.o"))
        subprocess.run([*compiler, *STRICT, *include, "-c", str(source), "-o", objects[-1]], check=True)
    subprocess.run(["g++", *objects, "-o", str(tmp_path / "program"), "-lm"], check=True)
    return subprocess.run([str(tmp_path / "program")], capture_output=True, text=True, check=True).stdout.splitlines()


def arm():
    return el.elastic_robot(planar_arm(3), [500.0, 400.0, 300.0], motor_inertia=[0.5, 0.3, 0.2])


@pytest.mark.parametrize("precision, share", [("double", 1e-12), ("single", 1e-5)])
def test_a_law(precision, share, tmp_path):
    law = el.feedforward_pd(arm(), 200.0, 20.0)
    code = od.ros2_controller(law, tmp_path / "law", name="law", torque_limit=1e3, precision=precision)
    joints = ("joint1", "joint2", "joint3")
    kinds = {"q": "position", "v": "velocity", "theta": "motor_position", "dtheta": "motor_velocity"}
    measured = [n for n in law.function.name_in() if n in kinds]
    assert code.states == tuple(f"{j}/{kinds[n]}" for n in measured for j in joints)
    assert code.commands == tuple(f"{j}/effort" for j in joints)
    lines = built_and_run(code, "controller.input().q_ref[0] = 0.25;", tmp_path)
    assert lines[: len(code.states) + 3] == [*code.states, *code.commands]
    rows = [[float(x) for x in line.split()] for line in lines[-3:]]
    values = iter(0.1 * np.sin(1.0 + np.arange(len(code.states))))
    given = {n: np.zeros(law.function.size1_in(n)) for n in law.function.name_in()}
    given |= {n: [next(values) for _ in joints] for n in measured}
    given["q_ref"][0] = 0.25
    expected = np.array(law.function(**given)["tau_m"]).ravel()
    for row, status, failures in ((rows[0], 0, 0), (rows[2], 0, 1)):
        assert row[:3] == pytest.approx(expected, abs=share * np.abs(expected).max())
        assert row[3:] == [status, failures]
    assert rows[1][:3] == [0.0, 0.0, 0.0]
    assert rows[1][3] != 0


def test_a_predictive_controller(tmp_path):
    from controllers import pendulum

    ocp, tau, _, _ = pendulum(4)
    control = od.mpc(ocp, outputs={"tau": tau}, name="swing", output_bounds={"tau": (-100.0, 100.0)})
    code = od.ros2_controller(control, tmp_path / "swing", joints=["shoulder", "elbow"])
    assert code.states == tuple(f"{j}/{x}" for x in ("position", "velocity") for j in ("shoulder", "elbow"))
    lines = built_and_run(code, "controller.input().r[1][0] = 0.2;", tmp_path)
    rows = [[float(x) for x in line.split()] for line in lines[-3:]]
    measured, r = 0.1 * np.sin(1.0 + np.arange(4)), np.zeros((5, 2))
    r[1, 0] = 0.2
    found = control.step({"q_now": measured[:2], "v_now": measured[2:], "r": r})
    assert rows[0][:2] == pytest.approx(np.ravel(found["tau"]), rel=1e-9)
    assert rows[0][2] == found["status"]
    assert rows[1][2] == 2
    assert np.abs(rows[1][:2]).max() <= 100.0


def test_it_says_what_it_is(tmp_path):
    code = od.ros2_controller(el.gravity_pd(arm(), 200.0, 20.0), tmp_path / "law")
    header = (code.folder / f"{code.name}_ros2.hpp").read_text()
    assert "never yet against ros2_control itself" in header
    assert "NOT ros2_control" in (code.stub / "controller_interface" / "controller_interface.hpp").read_text()


def test_what_is_refused(tmp_path):
    law = el.gravity_pd(arm(), 200.0, 20.0)
    with pytest.raises(od.UnknownName, match="'qq'"):
        od.ros2_controller(law, tmp_path / "law", states={"qq": "position"})
    with pytest.raises(od.ShapeError, match="interface of theta is 3"):
        od.ros2_controller(law, tmp_path / "law", states={"theta": 3})
    with pytest.raises(od.ShapeError, match="options wrong"):
        od.ros2_controller(law, tmp_path / "law", wrong=1)
    with pytest.raises(od.ShapeError, match="no states; give"):
        od.ros2_controller(law, tmp_path / "law", states={})
    motion = el.rest_to_rest([0.0], [1.0], 1.0)
    planned = od.Trajectory(motion.t, motion.pieces, joints="a", units=["rad"])
    with pytest.raises(od.ShapeError, match="expected a controller or a law"):
        od.ros2_controller(planned, tmp_path / "law", name="move")
    assert not (tmp_path / "law").exists()
