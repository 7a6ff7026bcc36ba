"""Trajectories in files: csv, npz, json, with names, units, limits and info; what is read is what was written."""

import contextlib
import csv
import hashlib
import io
import json
import os
from dataclasses import replace

import numpy as np

from .._version import __version__
from ..errors import FileError, ShapeError, UnknownName
from ..files import parsed_json, read_npz, read_text, write_bytes, write_text
from ..text import csv_cell, json_line, json_text, terminal
from .limits import Limits
from .quantities import DYNAMIC, ORDERS, order_name

FORMATS = (".csv", ".npz", ".json")
_FORMAT = "oc_dyn trajectory 1"


def save(samples, path, layout=None):
    """Write a Trajectory or Samples; see Samples.save."""
    kind = _kind(path)
    if layout is not None:
        if layout != "joint_trajectory":
            raise UnknownName("layout", layout, ("joint_trajectory",))
        if kind != ".json":
            raise UnknownName("file format of layout 'joint_trajectory'", kind, (".json",))
        return write_text(path, json_text(_joint_trajectory(samples), indent=1) + "\n")
    columns = {k: np.asarray(x, float) for k, x in _columns(samples).items()}
    meta = _meta(samples, list(columns))
    meta["sha256"] = _digest(meta, samples.t, columns)
    if kind == ".npz":
        buffer = io.BytesIO()
        np.savez(buffer, meta=np.array(json_text(meta)), t=samples.t, **columns)
        write_bytes(path, buffer.getvalue())
    elif kind == ".json":
        table = {"meta": meta, "t": samples.t.tolist(), **{k: x.tolist() for k, x in columns.items()}}
        lines = (f"{json_text(k)}: {json_text(x)}" for k, x in table.items())
        write_text(path, "{\n" + ",\n".join(lines) + "\n}\n")
    else:
        buffer = io.StringIO()
        buffer.write("# " + json_line(meta) + "\n")
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(_headings(columns, samples.joints))
        for row in np.column_stack([samples.t, *columns.values()]):
            writer.writerow([f"{x:.17g}" for x in row])
        write_text(path, buffer.getvalue())


def _headings(columns, joints):
    return ["t"] + [csv_cell(terminal(f"{k}.{joint}")) for k in columns for joint in joints]


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
    try:
        meta, t, columns = read(source)
        limits = _limits(meta)
    except (FileError, OSError):
        raise
    except Exception as error:  # whatever a damaged file makes its reader do
        raise FileError(source, [f"cannot be read: {type(error).__name__}: {error}"]) from error
    joints = tuple(meta["joints"])
    if robot is not None and tuple(robot.coordinate_names) != joints:
        raise FileError(
            source, [f"it is of joints {', '.join(joints)}, but {robot.name} has {', '.join(robot.coordinate_names)}"]
        )
    facts = {
        "joints": joints,
        "units": meta["units"],
        "robot": robot,
        "friction": meta.get("friction", True),
        "limits": limits,
        "info": meta["info"],
        "torques": tuple(columns[k] for k in DYNAMIC) if DYNAMIC[0] in columns else None,
    }
    derivatives = [columns[order_name(k)] for k in range(meta["continuity"] + 2)]
    if meta["grid"] == "pieces":
        return "pieces", {"t": t, "pieces": np.stack([x[:-1] for x in derivatives], axis=1), **facts}
    derivatives += [np.zeros_like(derivatives[0])] * (ORDERS - len(derivatives))
    return "samples", {"t": t, "derivatives": derivatives, "continuity": meta["continuity"], **facts}


def _kind(path):
    kind = os.path.splitext(os.fspath(path))[1].lower()
    if kind not in FORMATS:
        raise UnknownName("file format", kind or os.fspath(path), FORMATS)
    return kind


def _columns(samples):
    columns = {order_name(k): samples.derivatives[k] for k in range(samples.continuity + 2)}
    if samples.robot is not None or samples._torques is not None:
        columns |= {k: getattr(samples, k) for k in DYNAMIC}
    return columns


def _meta(samples, names):
    limits = samples.limits
    followers = None if limits is None else limits.followers
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
        "limits": None if limits is None else replace(limits, followers=None).as_dict(),
        **({} if followers is None else {"followers": followers.as_dict()}),
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


def _limits(meta):
    if meta["limits"] is None:
        return None
    followers = meta.get("followers")
    if followers is not None:
        if not isinstance(followers, dict):
            raise ShapeError(f"followers is {_shown(followers)}, expected an object {{joint: limits}}")
        followers = Limits(tuple(followers)).updated(followers)
    return replace(Limits(meta["joints"]).updated(meta["limits"]), followers=followers)


def _digest(meta, t, columns):
    """Of all that the file holds: a number that was changed can be told from one that was written."""
    meta = {k: x for k, x in meta.items() if k != "sha256"}
    found = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for table in (t, *columns.values()):
        found.update(np.ascontiguousarray(table, "<f8").tobytes())
    return found.hexdigest()


def _checked_meta(source, meta):
    """The metadata, if every entry is what `save` writes there; FileError that names the one that is not."""
    if not isinstance(meta, dict) or meta.get("format") != _FORMAT:
        raise FileError(source, [f"its metadata is not that of {_FORMAT!r}; it was not written by Trajectory.save"])
    required = ("grid", "joints", "units", "columns", "continuity", "limits", "info")
    optional = ("version", "robot", "time_unit", "friction", "followers", "sha256", "format")
    missing = [k for k in required if k not in meta]
    if missing:
        raise FileError(source, [f"its metadata has no {missing[0]!r}"])
    unknown = set(meta).difference(required, optional)
    if unknown:
        raise FileError(source, [f"its metadata has an entry {_shown(min(unknown))} that is not known"])
    _check_columns(source, meta)
    for key, known in (("grid", ("pieces", "samples")), ("time_unit", ("s", None))):
        if meta.get(key) not in known:
            raise FileError(source, [f"its metadata: {key} is {_shown(meta[key])}, expected {known[0]!r}"])
    if not isinstance(meta.get("friction", True), bool):
        raise FileError(source, [f"its metadata: friction is {_shown(meta['friction'])}, expected true or false"])
    info = meta["info"]
    if not isinstance(info, dict) or not isinstance(info.get("robot"), (str, type(None))):
        raise FileError(source, ["its metadata: info is no object of facts, or its robot no name"])
    try:
        _limits(meta)
    except (ValueError, TypeError) as error:
        raise FileError(source, [f"its metadata: {error}"]) from None
    return meta


def _check_columns(source, meta):
    """FileError unless joints, units, continuity and columns belong together."""
    joints, continuity = meta["joints"], meta["continuity"]
    names = _texts(source, meta, "joints")
    if not names or len(set(names)) != len(names):
        raise FileError(source, [f"its metadata: joints is {_shown(joints)}, expected names, no two alike"])
    if len(_texts(source, meta, "units")) != len(names):
        raise FileError(source, [f"its metadata: {len(meta['units'])} units for {len(names)} joints"])
    columns = _texts(source, meta, "columns")
    if isinstance(continuity, bool) or not isinstance(continuity, int) or not 0 <= continuity <= len(columns) - 2:
        expected = f"an integer from 0 to {len(columns) - 2}, as there are columns"
        raise FileError(source, [f"its metadata: continuity is {_shown(continuity)}, expected {expected}"])
    wanted = [order_name(k) for k in range(continuity + 2)]
    if columns not in (wanted, [*wanted, *DYNAMIC]):
        problem = f"its metadata: columns is {_shown(columns)}, expected {', '.join(wanted)}, and tau, dtau or neither"
        raise FileError(source, [problem])


def _texts(source, meta, key):
    value = meta[key]
    if not isinstance(value, list) or not all(isinstance(x, str) for x in value):
        raise FileError(source, [f"its metadata: {key} is {_shown(value)}, expected a list of texts"])
    return value


def _shown(x):
    text = repr(x)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _read_csv(source):
    text = read_text(source)
    first, _, rest = text.partition("\n")
    if not first.startswith("# {"):
        raise FileError(f"{source}:1", ["expected the metadata line '# {...}'"])
    meta = _checked_meta(f"{source}:1", _parsed_meta(f"{source}:1", first[2:]))
    expected = _headings(meta["columns"], meta["joints"])
    reader = csv.reader(io.StringIO(rest, newline=""))
    header = next(reader, [])
    if header != expected:
        wrong = next((a for a, b in zip(header, expected, strict=False) if a != b), f"{len(header)} names")
        raise FileError(f"{source}:2", [f"the header does not fit the metadata, at {wrong!r}"])
    table = []
    for row in reader:
        line = f"{source}:{reader.line_num + 1}"
        if len(row) != len(expected):
            raise FileError(line, [f"{len(row)} columns, expected {len(expected)}"])
        table.append([_number(line, name, x) for name, x in zip(expected, row, strict=True)])
    n = len(meta["joints"])
    table = np.array(table, float).reshape(-1, len(expected))
    columns = {k: table[:, 1 + i * n : 1 + (i + 1) * n] for i, k in enumerate(meta["columns"])}
    return _checked(source, meta, table[:, 0], columns)


def _number(line, name, text):
    try:
        if "_" in text:  # Python's digits in groups
            raise ValueError
        return float(text)
    except ValueError:
        raise FileError(line, [f"column {name}: {_shown(text)} is not a number"]) from None


def _parsed_meta(source, text):
    try:
        return parsed_json(source, text)
    except FileError as error:
        raise FileError(source, [f"its metadata cannot be read: {'; '.join(error.problems)}"]) from None


def _read_npz(source):
    tables = read_npz(source, "trajectory")
    text = tables.pop("meta", None)
    if text is None or text.ndim or text.dtype.kind != "U":
        raise FileError(source, ["it has no metadata; it was not written by Trajectory.save"])
    meta = _checked_meta(source, _parsed_meta(source, str(text)))
    return _arrays(source, meta, tables)


def _read_json(source):
    data = parsed_json(source, read_text(source))
    if not isinstance(data, dict) or "meta" not in data:
        raise FileError(source, ["expected an object with 'meta' and tables; it was not written by Trajectory.save"])
    return _arrays(source, _checked_meta(source, data.pop("meta")), data)


def _arrays(source, meta, data):
    missing = [k for k in ("t", *meta["columns"]) if k not in data]
    if missing:
        raise FileError(source, [f"table {missing[0]!r} is missing"])
    t, *columns = (_table(source, k, data[k]) for k in ("t", *meta["columns"]))
    return _checked(source, meta, t, dict(zip(meta["columns"], columns, strict=True)))


def _table(source, name, rows):
    """Array of floats; FileError for all but plain numbers in rows of one length."""
    table = rows
    if isinstance(rows, list) and all(type(x) in (int, float) for x in _entries(rows)):
        with contextlib.suppress(ValueError, OverflowError):
            table = np.array(rows, float)
    if not isinstance(table, np.ndarray) or table.dtype.kind not in "fiu":
        raise FileError(source, [f"table {name!r} is not made of numbers, or its rows differ in length"])
    return table.astype(float)


def _entries(rows):
    return (x for row in rows for x in (row if isinstance(row, list) else [row]))


def _checked(source, meta, t, columns):
    """(meta, t, columns), if shapes and times are those of a motion, and the numbers those that were written."""
    n, least = len(meta["joints"]), 2 if meta["grid"] == "pieces" else 1
    if t.ndim != 1 or len(t) < least:
        raise FileError(source, [f"t has the shape {t.shape}; {len(t)} complete rows, expected at least {least}"])
    for name, x in columns.items():
        if x.shape != (len(t), n):
            raise FileError(source, [f"table {name!r} has the shape {x.shape}, expected {(len(t), n)}, as t has"])
    for name, x in (("t", t), *columns.items()):
        if not np.all(np.isfinite(x)):
            row = _first(~np.isfinite(x))
            raise FileError(source, [f"table {name!r} has a number that is not finite, in row {row}"])
    steps = np.diff(t)
    back = steps <= 0 if meta["grid"] == "pieces" else steps < 0  # samples may show both sides of a jump
    if np.any(back):
        k = _first(back)
        raise FileError(source, [f"its times do not increase: {t[k - 1]:g} s, then {t[k]:g} s, in row {k + 1}"])
    if meta.get("sha256", "") != "" and meta["sha256"] != _digest(meta, t, columns):
        cure = 'take the file anew; if it was edited on purpose, delete the entry "sha256" of its metadata'
        raise FileError(source, [f"its numbers or its metadata are not those that were written; {cure}"])
    return meta, t, columns


def _first(wrong):
    """Number, from 1 on, of the first row with an entry."""
    return int(np.argmax(wrong.reshape(len(wrong), -1).any(axis=1))) + 1
