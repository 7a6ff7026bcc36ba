"""Solvers of quadratic programs, their options, and those of the iterations around them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from ..errors import SolveError
from ..numbers import shortened
from ..optimal_control.solver import checked_options, refusal
from ..validation import options_of
from .sqp import OPTIONS
from .stage_qp import DEFAULTS

_OF: dict[str, dict[str, Any]] = {  # bounded: an active set that needs more is not found within a period
    "qrqp": {"print_iter": False, "print_header": False, "max_iter": 50},
    "osqp": {"osqp": {"verbose": False, "eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 4000}},
    # without eps_prox a singular Hessian ends in u = 0
    "daqp": {"daqp": {"eps_prox": 1e-6, "iter_limit": 200}},
    # a bound that is not there is one at `inf`, by which its complementarity is multiplied: with CasADi's own, 1e8,
    # most programs of a Panda end after 100 iterations, at residuals that they cannot reach
    "hpipm": {"inf": 1e4, "hpipm": {"mode": "balance", "iter_max": 50, "res_g_max": 1e-6}},
}
WITHOUT_C = {  # solvers that codegen refuses, and why
    "hpipm": "the C that CasADi writes for it takes its memory from the heap, and needs libhpipm and libblasfeo",
}
LIBRARIES: dict[str, tuple[str, ...]] = {  # that their C needs
    "riccati": (),
    "qrqp": (),
    "osqp": ("osqp",),
    "daqp": ("daqp",),
    "hpipm": (),
}
_SILENT = ("print_header", "print_iteration", "print_status", "print_time", "verbose", "error_on_fail", "calc_lam_p")


def solver_choice(qpsol: str, iterations: int, asked: Mapping[str, Any]) -> tuple[tuple[str, Any], int, dict[str, Any]]:
    """((solver of quadratic programs, its options), iterations, options of sqp), from those of casadi's sqpmethod.

    Raises SolveError for options that it does not have, or that have no part here.
    """
    outer, inner = checked_options("sqpmethod", {"qpsol": qpsol, "max_iter": iterations, **asked}, free_time=False)
    inner_asked = options_of("mpc: solver_options: qpsol_options", asked.get("qpsol_options"))
    asked = {**asked, "qpsol_options": inner_asked} if "qpsol_options" in asked else asked
    x = ca.SX.sym("x")
    tried = {**_with_qp_options(outer, asked), **inner}
    if outer["qpsol"] == "riccati":
        _check_own(asked.get("qpsol_options", {}))
    if outer["qpsol"] in ("riccati", "hpipm"):  # the latter takes no program without stages
        tried |= {"qpsol": "qrqp", "qpsol_options": {**_OF["qrqp"], "print_info": False, "error_on_fail": False}}
    try:  # what casadi says of options that it does not know, of solvers, of their options
        ca.nlpsol("options", "sqpmethod", {"x": x, "f": x**2}, tried)
    except RuntimeError as error:
        raise SolveError(refusal("sqpmethod", error)) from None
    known = {*OPTIONS, *_SILENT, "qpsol", "qpsol_options", "max_iter", "convexify_strategy"}
    for key in asked:
        if key not in known:
            raise SolveError(f"mpc: solver option {key!r} has no part in its iterations; it knows {sorted(known)}")
    options = {k: v for k, v in outer.items() if k in OPTIONS}
    _check_outer(options)
    outer = _with_qp_options(outer, asked)
    return (outer["qpsol"], outer["qpsol_options"]), int(outer["max_iter"]), options


def _with_qp_options(outer: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Our options of the solver of quadratic programs, the caller's over them."""
    own = _OF.get(outer["qpsol"], {})
    if outer["qpsol"] == "riccati":
        return {**outer, "qpsol_options": {**DEFAULTS, **asked.get("qpsol_options", {})}}
    return {**outer, "qpsol_options": {**own, "error_on_fail": False, **asked.get("qpsol_options", {})}}


def _check_own(asked: Mapping[str, Any]) -> None:
    """SolveError for options that our own solver does not have."""
    for key, value in asked.items():
        if key not in DEFAULTS:
            raise SolveError(f"mpc: qpsol 'riccati' has no option {key!r}; it knows {sorted(DEFAULTS)}")
        if not _is_number(value) or not 0 < value < float("inf"):
            raise SolveError(f"mpc: qpsol_options: {key} is {shortened(value)}, expected a positive number")
        if isinstance(DEFAULTS[key], int) and value != int(value):
            raise SolveError(f"mpc: qpsol_options: {key} is {shortened(value)}, expected a positive integer")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def _check_outer(options: Mapping[str, Any]) -> None:
    """SolveError for options of the iterations that cannot be: shares from 0 to 1, others from 0 on."""
    for key, value in options.items():
        most = 1 if key in ("c1", "beta") else float("inf")
        if not _is_number(value) or not (0 <= value <= most and value < float("inf")):
            range_ = "from 0 to 1" if most == 1 else "from 0 on"
            raise SolveError(f"mpc: solver_options: {key} is {shortened(value)}, expected a number {range_}")
        if isinstance(OPTIONS[key], int) and value != int(value):
            raise SolveError(f"mpc: solver_options: {key} is {shortened(value)}, expected an integer")
