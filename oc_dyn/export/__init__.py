"""Robots for other programs: od.export.mjcf (MuJoCo), od.export.pinocchio, od.export.functions (CasADi files)."""

from .function_files import functions, load_functions
from .mjcf_text import mjcf
from .pinocchio_model import pinocchio

__all__ = ["functions", "load_functions", "mjcf", "pinocchio"]
