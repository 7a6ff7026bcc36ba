"""URDF files of the wheel example-robot-data."""

import importlib.metadata


def example_file(path):
    """Path of a file, given below the wheel's folder "robots"; None without the wheel."""
    try:
        files = importlib.metadata.files("example-robot-data") or ()
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((file.locate() for file in files if str(file).endswith(f"/robots/{path}")), None)
