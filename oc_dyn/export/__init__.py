"""Robots for other programs: od.export.mjcf (MuJoCo), od.export.pinocchio, od.export.functions (CasADi files)."""

from .functions import functions, load_functions
from .mjcf import mjcf
from .pinocchio import pinocchio

__all__ = ["functions", "load_functions", "mjcf", "pinocchio"]
