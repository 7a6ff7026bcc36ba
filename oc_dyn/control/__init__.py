"""Model-predictive control, in Python and as C, and the laws it falls back to."""

from .laws import brake as brake
from .laws import gravity as gravity
from .status import Status as Status

__all__ = ["Status", "brake", "gravity"]
