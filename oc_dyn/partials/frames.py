"""Working axes, where they are from."""

from ..kinematics.working_frames import WorkingFrame, hangs_on_parallel_axes, sparse, working_frames  # noqa: F401
