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


# named, so that checkouts with more of them build the same 119 Functions
QUANTITIES = (
    "inverse_dynamics", "frame_pose", "frame_twist", "frame_jacobian", "forward_dynamics", "mass_matrix",
    "coriolis_matrix", "gravity", "bias", "eom_coefficients", "dynamic_matrices", "hybrid_dynamics",
    "inverse_dynamics_partials", "forward_dynamics_partials", "hybrid_dynamics_partials", "mass_matrix_inverse",
    "inverse_dynamics_adjoint", "forward_dynamics_adjoint", "inverse_dynamics_lagrangian_hessian",
    "forward_dynamics_lagrangian_hessian", "inverse_dynamics_second_partials", "forward_dynamics_second_partials",
    "joint_torque_regressor", "slotine_li_regressor", "matrix_partials", "matrix_parameter_partials", "kinetic_energy",
    "potential_energy", "momentum", "com", "com_jacobian",
)  # fmt: skip


def panda():
    """The quantities of a rigid robot on a fixed base by default methods, of orders 0 to 4 as far as they go."""
    import oc_dyn as od

    quiet()
    r = od.robots.panda()
    yield timed("first", lambda: list(all_of(od, r)), lambda made: f"{len(made)} Functions")[0]


def all_of(od, r, orders=range(5)):
    """The Functions of `panda`."""
    for quantity in QUANTITIES:
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
