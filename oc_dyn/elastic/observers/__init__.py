"""Observers of elastic robots: what sensors do not give, for laws of control and for themselves."""

from .filters import velocity_filter
from .link_state import link_state_observer
from .observed import observed
from .observer import Observer, observer
from .residuals import disturbance_observer, friction_observer, momentum_observer

__all__ = [
    "Observer",
    "disturbance_observer",
    "friction_observer",
    "link_state_observer",
    "momentum_observer",
    "observed",
    "observer",
    "velocity_filter",
]
