"""A multirotor's base flies along a path while its arms swing passively, or move as prescribed: which wrench it takes.

    minimise    integral of |base wrench|^2 + 1e-4 |d4 x|^2
    subject to  x = (position, yaw) of the base four times differentiable, from rest to rest through a gate,
                M v' + C = [wrench; tau]:  the base moves as x says;  its arms  (passive) have tau = 0 and find their own
                motion,  or  (prescribed) follow angles given beforehand,
                thrusts of the six propellers between 0 and their limit.

Hybrid dynamics: accelerations prescribed at the base, torques prescribed at passive arms. The planned wrench, fed to the
forward dynamics of the whole robot, has to give the planned base path back; what it gains in energy is its power.
Source: Ali, Gabellieri, Franchi 2026, section 7 (the robot and the use of hybrid dynamics); path and gate are ours.
Run:    python problems/aerial_manipulator_tracking.py [--quick] [--quiet] [--out DIR]
"""

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import casadi as ca
import numpy as np
from matplotlib.figure import Figure

import oc_dyn as od
from oc_dyn.elastic.dop853 import dop853
from oc_dyn.study.manifest import manifest, write_json

# -- data -----------------------------------------------------------------------------------------------------
