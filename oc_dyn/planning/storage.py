"""Trajectories in files: csv, npz, json, with names, units, limits and info; what is read is what was written."""

import csv
import io
import json
import os
import zipfile

import numpy as np

from ..errors import ModelError, UnknownName
from .files import write_bytes, write_text
from .limits import Limits, order_name

FORMATS = (".csv", ".npz", ".json")
_FORMAT = "oc_dyn trajectory 1"
_ORDERS = 5


def save(samples, path, layout=None):
    """Write a Trajectory or Samples; see Samples.save."""
    kind = _kind(path)
    if layout is not None:
        if layout != "joint_trajectory":
            raise UnknownName("layout", layout, ("joint_trajectory",))
        if kind != ".json":
            raise UnknownName("file format of layout 'joint_trajectory'", kind, (".json",))
        return write_text(path, json.dumps(_joint_trajectory(samples), ensure_ascii=False, indent=1) + "\n")
    columns = _columns(samples)
    meta = _meta(samples, list(columns))
    if kind == ".npz":
        buffer = io.BytesIO()
        np.savez(buffer, meta=np.array(json.dumps(meta, ensure_ascii=False)), t=samples.t, **columns)
        write_bytes(path, buffer.getvalue())
    elif kind == ".json":
        table = {"meta": meta, "t": samples.t.tolist(), **{k: x.tolist() for k, x in columns.items()}}
        lines = (f"{json.dumps(k)}: {json.dumps(x, ensure_ascii=False)}" for k, x in table.items())
        write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")
    else:
        buffer = io.StringIO()
        buffer.write("# " + json.dumps(meta, ensure_ascii=False) + "\n")
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(["t"] + [f"{k}.{joint}" for k in columns for joint in samples.joints])
        for row in np.column_stack([samples.t, *columns.values()]):
            writer.writerow([f"{x:.17g}" for x in row])
        write_text(path, buffer.getvalue())


def _joint_trajectory(samples):
    """Fields of trajectory_msgs/JointTrajectory, the times from 0 on; effort where the torques are known."""
    effort = samples.tau if samples.robot is not None or samples._torques is not None else [[]] * len(samples.t)
    rows = zip(samples.t - samples.t[0], samples.q, samples.v, samples.dv, effort, strict=True)
    return {
        "header": {"stamp": _stamp(0.0), "frame_id": ""},
        "joint_names": list(samples.joints),
        "points": [
            {
                "positions": [float(x) for x in q],
                "velocities": [float(x) for x in v],
                "accelerations": [float(x) for x in dv],
                "effort": [float(x) for x in tau],
                "time_from_start": _stamp(t),
            }
            for t, q, v, dv, tau in rows
        ],
    }


def _stamp(t):
    nanoseconds = round(float(t) * 1e9)
    return {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9}


def load(path, robot=None):
    """("pieces" or "samples", arguments of Trajectory or Samples) from a file that `save` wrote."""
    kind = _kind(path)
    source = os.fspath(path)
    read = {".csv": _read_csv, ".npz": _read_npz, ".json": _read_json}[kind]
    meta, t, columns = read(source)
    joints = tuple(meta["joints"])
    if robot is not None and tuple(robot.coordinate_names) != joints:
        raise ModelError(
            source, [f"it is of joints {', '.join(joints)}, but {robot.name} has {', '.join(robot.coordinate_names)}"]
        )
    facts = {
        "joints": joints,
        "units": meta["units"],
        "robot": robot,
        "friction": bool(meta.get("friction", True)),
        "limits": None if meta["limits"] is None else Limits(joints).updated(meta["limits"]),
        "info": meta["info"],
        "torques": (columns["tau"], columns["dtau"]) if "tau" in columns else None,
    }
    derivatives = [columns[order_name(k)] for k in range(meta["continuity"] + 2)]
    if meta["grid"] == "pieces":
        return "pieces", {"t": t, "pieces": np.stack([x[:-1] for x in derivatives], axis=1), **facts}
    derivatives += [np.zeros_like(derivatives[0])] * (_ORDERS - len(derivatives))
    return "samples", {"t": t, "derivatives": derivatives, "continuity": meta["continuity"], **facts}


def _kind(path):
    kind = os.path.splitext(os.fspath(path))[1].lower()
    if kind not in FORMATS:
        raise UnknownName("file format", kind or os.fspath(path), FORMATS)
    return kind


def _columns(samples):
    columns = {order_name(k): samples.derivatives[k] for k in range(samples.continuity + 2)}
    if samples.robot is not None or samples._torques is not None:
        columns |= {"tau": samples.tau, "dtau": samples.dtau}
    return columns


def _meta(samples, names):
    from .. import __version__  # not at the top: the package imports this file

    return {
        "format": _FORMAT,
        "version": __version__,
        "grid": "pieces" if hasattr(samples, "pieces") else "samples",
        "robot": samples.robot_name,
        "joints": list(samples.joints),
        "units": list(samples.units),
        "time_unit": "s",
        "columns": names,
        "continuity": samples.continuity,
        "friction": bool(samples.friction),
        "limits": None if samples.limits is None else samples.limits.as_dict(),
        "info": _plain({"robot": samples.robot_name, **samples.info}),
    }


def _plain(x):
    """x as JSON can hold it; numbers that are not finite become null."""
    if isinstance(x, dict):
        return {str(k): _plain(v) for k, v in x.items()}
    if isinstance(x, (list, tuple, np.ndarray)):
        return [_plain(v) for v in x]
    if isinstance(x, (bool, np.bool_)):
        return bool(x)
    if isinstance(x, (int, np.integer)):
        return int(x)
    if isinstance(x, (float, np.floating)):
        return float(x) if np.isfinite(x) else None
    return x if x is None else str(x)


def _checked_meta(source, text):
    try:
        meta = json.loads(text) if isinstance(text, str) else text
        missing = {"format", "grid", "joints", "units", "columns", "continuity", "limits", "info"} - set(meta)
    except (json.JSONDecodeError, TypeError) as error:
        raise ModelError(source, [f"its metadata cannot be read: {error}"]) from None
    if missing or meta["format"] != _FORMAT:
        raise ModelError(source, [f"its metadata is not that of {_FORMAT!r}; it was not written by Trajectory.save"])
    return meta


def _read_text(source):
    try:
        with open(source, encoding="utf-8-sig", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise ModelError(source, [f"not UTF-8 text: {error.reason} at byte {error.start}"]) from None


def _read_csv(source):
    first, _, rest = _read_text(source).partition("\n")
    if not first.startswith("# {"):
        raise ModelError(f"{source}:1", ["expected the metadata line '# {...}'"])
    meta = _checked_meta(f"{source}:1", first[2:])
    expected = ["t"] + [f"{k}.{joint}" for k in meta["columns"] for joint in meta["joints"]]
    reader = csv.reader(io.StringIO(rest, newline=""))
    header = next(reader, [])
    if header != expected:
        wrong = next((a for a, b in zip(header, expected, strict=False) if a != b), f"{len(header)} names")
        raise ModelError(f"{source}:2", [f"the header does not fit the metadata, at {wrong!r}"])
    table = []
    for row in reader:
        line = f"{source}:{reader.line_num + 1}"
        if len(row) != len(expected):
            raise ModelError(line, [f"{len(row)} columns, expected {len(expected)}"])
        table.append([_number(line, name, x) for name, x in zip(expected, row, strict=True)])
    n = len(meta["joints"])
    table = _table(source, table, len(expected))
    columns = {k: table[:, 1 + i * n : 1 + (i + 1) * n] for i, k in enumerate(meta["columns"])}
    return meta, table[:, 0], columns


def _number(line, name, text):
    try:
        return float(text)
    except ValueError:
        raise ModelError(line, [f"column {name}: {text!r} is not a number"]) from None


def _table(source, rows, width):
    try:
        table = np.array(rows, float).reshape(-1, width)
    except (ValueError, TypeError):
        raise ModelError(source, ["its table is not made of numbers, or its rows differ in length"]) from None
    if len(table) < 2 or not np.all(np.isfinite(table)):
        raise ModelError(source, [f"{len(table)} complete rows of finite numbers, expected at least 2"])
    return table


def _read_npz(source):
    try:
        with np.load(source, allow_pickle=False) as data:
            data = dict(data)
        meta = _checked_meta(source, str(data["meta"]))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, (FileNotFoundError, ModelError)):
            raise
        raise ModelError(source, [f"not an npz file of a trajectory: {error}"]) from None
    return _arrays(source, meta, data)


def _read_json(source):
    try:
        data = json.loads(_read_text(source))
    except json.JSONDecodeError as error:
        raise ModelError(f"{source}:{error.lineno}", [f"not JSON: {error.msg}"]) from None
    if not isinstance(data, dict) or "meta" not in data:
        raise ModelError(source, ["expected an object with 'meta' and tables; it was not written by Trajectory.save"])
    return _arrays(source, _checked_meta(source, data["meta"]), data)


def _arrays(source, meta, data):
    missing = [k for k in ("t", *meta["columns"]) if k not in data]
    if missing:
        raise ModelError(source, [f"table {missing[0]!r} is missing"])
    t = _table(source, data["t"], 1)[:, 0]
    columns = {k: _table(f"{source}: {k}", data[k], len(meta["joints"])) for k in meta["columns"]}
    uneven = [k for k, x in columns.items() if len(x) != len(t)]
    if uneven:
        raise ModelError(source, [f"table {uneven[0]!r} has {len(columns[uneven[0]])} rows, t has {len(t)}"])
    return meta, t, columns
