"""The URDF files of the wheel example-robot-data, and how tests load a text."""

import importlib.metadata
import warnings
from pathlib import Path

import oc_dyn as od

# what release 6 has mended: a child link that does not exist, joints that move no mass
_MENDED = ("falcon.urdf", "bravo7_gripper.urdf")


def example_robots():
    """Paths, sorted; none without the wheel, and without files that were broken in the release that is installed."""
    try:
        found = importlib.metadata.files("example-robot-data") or []
        old = int(importlib.metadata.version("example-robot-data").partition(".")[0]) < 6
    except importlib.metadata.PackageNotFoundError:
        return []
    files = sorted(Path(f.locate()).resolve() for f in found if f.suffix == ".urdf")
    return [f for f in files if not (old and f.name.endswith(_MENDED))]


def quiet(text, **options):
    """The robot, which must load without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return od.load_urdf(text, **options)
