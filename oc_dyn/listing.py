"""`oc-dyn list` and `oc-dyn plan` for terminals of any width, and for machines."""

from __future__ import annotations

import math
from typing import Any

from .command_line import fitted
from .planning.report import Report
from .registry import get, method_rows, quantities


def records() -> list[dict[str, Any]]:
    """All quantities and methods as records: quantity, method, default, orders, kind, source."""
    out = []
    for quantity in quantities():
        default = get(quantity).default
        for method, orders, kind, source in method_rows(quantity):
            names = {"quantity": quantity, "method": method, "default": bool(default) and method == default[0]}
            out.append({**names, "orders": orders, "kind": kind, "source": source})
    return out


def listing(width: int) -> str:
    """The quantities, below each its methods, in lines of at most `width` columns; a star marks the default."""
    lines, seen = [], ""
    rows = records()
    names, kinds = (max(len(r[k]) for r in rows) for k in ("method", "kind"))
    for r in rows:
        if r["quantity"] != seen:
            seen = r["quantity"]
            lines.append(seen)
        star = "*" if r["default"] else " "
        lines.append(fitted(f"  {star} {r['method']:{names}}  {r['orders']:5}  {r['kind']:{kinds}}", width).rstrip())
        lines.append(fitted(f"      {r['source']}", width))
    told = "* is the default. Orders of derivatives, kind, source; oc-dyn describe QUANTITY tells more."
    return "\n".join([*lines, "", fitted(told, width)])


def plan_record(plan: Any, report: Report, out: str, written: list[str]) -> dict[str, Any]:
    """A plan as a record: duration [s], verdict, limits, files; numbers that are not finite are None."""
    info = {k: plan.info[k] for k in ("objective", "solver", "status", "iterations", "seconds") if k in plan.info}
    units = dict(zip(plan.joints, plan.units or (), strict=False))
    rows = [{k: _finite(x) for k, x in vars(r).items()} | {"joint_unit": units.get(r.joint, "")} for r in report.rows]
    return {
        "robot": plan.robot_name, "duration": plan.duration, "within_limits": report.ok(),
        "worst_share": _finite(report.worst), "limits": rows, "jumps": {k: _finite(x) for k, x in report.jumps.items()},
        "joints": list(plan.joints), "end": [float(x) for x in plan.q[-1]],
        **{k: _finite(x) for k, x in info.items()}, "out": out, "files": written,
    }  # fmt: skip


def _finite(x: Any) -> Any:
    """A number that JSON has, or None; what is no number as it is."""
    if isinstance(x, (bool, str, int)) or x is None:
        return x
    try:
        return float(x) if math.isfinite(x) else None
    except TypeError:
        return str(x)
