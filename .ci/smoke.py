"""What .ci/release-check does with the installed wheel: a robot from a file, numbers, a plan, files, a picture."""

import importlib.util
import sys
from pathlib import Path

import numpy as np

import oc_dyn as od

URDF = """<robot name="arm"><link name="base"/><link name="tip"><inertial><origin xyz="0.5 0 0"/><mass value="2"/>
<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="50" velocity="4" acceleration="20" jerk="200"/></joint></robot>"""

assert od.__version__ == sys.argv[1], od.__version__
assert "site-packages" in od.__file__, od.__file__
assert importlib.util.find_spec("urdf_parser_py") is None, "an empty environment has no urdf_parser_py"
arm = od.load(URDF)
tau = float(od.function(arm, "inverse_dynamics")(q=[0.3], v=[0.0], dv=[2.0])["tau"])
wanted = (0.1 + 2 * 0.5**2) * 2.0 - 2 * 9.81 * 0.5 * np.cos(0.3)  # a pendulum about y, by hand
assert abs(tau - wanted) < 1e-12, (tau, wanted)
plan = od.plan_point_to_point(arm, [0.0], [1.0])
assert plan.check().ok()
plan.save("plan.csv")
plan.plot("plan.svg")
od.view(arm, plan, path="plan.html")
od.export.mjcf(arm, "arm.xml")
od.export.functions(arm, "model")
for name in ("plan.csv", "plan.svg", "plan.html", "arm.xml", "model/ode.casadi"):
    assert Path(name).stat().st_size > 200, name
assert od.cite("recursive_body")
print(f"works: {plan}")
