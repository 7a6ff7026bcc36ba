"""Building Functions, and importing the package."""

import importlib

from .timing import quiet, timed


def package():
    """Importing the package in a process that has not imported anything."""
    yield timed("oc_dyn", lambda: importlib.import_module("oc_dyn"))[0]


def talos(quantity, order=0):
    """A Function of Talos on a floating base, of a robot that has none yet, and of another one that is equal to it."""
    import oc_dyn as od

    from .robots import robot

    quiet()
    for part in ("first", "equal robot"):
        r = robot("talos", floating_base=True)
        yield timed(part, lambda r=r: od.function(r, quantity, order=order), _count)[0]


def panda():
    """All quantities of a rigid robot on a fixed base by default methods, of orders 0 to 4 as far as they go."""
    import oc_dyn as od

    quiet()
    r = od.robots.panda()
    yield timed("first", lambda: list(all_of(od, r)), lambda made: f"{len(made)} Functions")[0]


def all_of(od, r, orders=range(5)):
    """The Functions of `panda`."""
    for quantity in od.quantities():
        if not quantity.startswith(("elastic", "distances")):
            for order in orders:
                options = {"frame": list(r.frames)[-1]} if quantity.startswith("frame") else {}
                if quantity in ("frame_twist", "frame_jacobian"):
                    options["representation"] = "body"
                if quantity.startswith("hybrid"):
                    options["prescribed"] = (r.joints[1].name,)
                try:
                    yield od.function(r, quantity, order=order, **options)
                except od.OrderError:
                    break


def _count(f):
    from oc_dyn.study.memory import peak

    return f"{f.n_instructions()} instructions, {peak() or 0:.0f} MB at most so far"
