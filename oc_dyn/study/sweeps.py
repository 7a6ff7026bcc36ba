"""Sweeps that are killed: no wrong number, no lost row.

A sweep runs again and again into one folder. Each time it is killed, interrupted, loses a worker or its disk, or meets
another one that writes to the same file; and before it starts again the order of its grid, its function or the version
of the package may be another. After every such event all rows in its database are compared with what the function gives
exactly, and with the rows that were there before; in the end the sweep runs through, and all its results are compared.
A second table counts what a sweep asks of the database and how long it takes, over the number of points.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import closing, suppress
from pathlib import Path

import numpy as np

from ..errors import SolveError
from ..files import write_csv
from ..planning.trajectory import Trajectory
from ..runs.manifest import manifest, write_json
from ..runs.points import bar as _bar
from ..runs.sweeps import sweep
from ..store import Store
from . import apart

KINDS = ("parent", "worker", "full disk", "two at once", "order", "version", "function", "Ctrl-C")
MORE, PER_FOLDER = 12, 10  # points that come with every event, events of one folder
SIZES = 500, 1000, 2000
_HEAD = (
    "event",
    "kind",
    "executor",
    "rows waited for",
    "after [ms]",
    "exit",
    "rows before",
    "rows after",
    "wrong",
    "lost",
)
CAPTIONS = {
    "kills.csv": "Every event: what happened, how long after the first new row (or the begin), rows before and after.",
    "linear.csv": "Statements of SQL and seconds of a sweep, and of one that finds all done, by number of points.",
}

VICTIM = """
import json, sys, time
import numpy as np
import oc_dyn as od
import oc_dyn.runs.sweeps

FACTOR = {factor!r}

def value(x):
    time.sleep(0.012)
    if x % 3 == 0:
        pieces = np.full((2, 3, 1), FACTOR * x) + np.arange(6.0).reshape(2, 3, 1)
        return od.Trajectory(np.arange(3.0), pieces, joints=["j"], units=["rad"])
    return {{"value": FACTOR * x, "point": x}}

if __name__ == "__main__":
    out, executor, version, most, points = json.loads(sys.argv[1])
    oc_dyn.runs.sweeps.version = lambda: version
    if most:
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    print("ready", flush=True)
    found = od.sweep(value, [{{"x": x}} for x in points], out=out, executor=executor)
    results = [float(r.pieces[0, 0, 0]) if hasattr(r, "pieces") else r and r["value"] for r in found.results]
    print(json.dumps([results, found.failed]), flush=True)
"""


def run(out, quick=False, progress=None, kills=None, seed=0):
    """Kill and compare; returns the report as a text.

    out: folder for kills.csv, linear.csv and manifest.json. quick: few events. kills: how many, by
    default 100. seed: of the kinds of events and their times. Needs signals of POSIX.
    """
    out, kills = Path(out), kills or (8 if quick else 100)
    with _bar(progress, kills, "sweeps", " events") as shown:
        events = killed(kills, seed, shown)
        sizes = linear(SIZES[:1] if quick else SIZES)
    write_csv(out / "kills.csv", [_HEAD, *([row[k] for k in _HEAD] for row in events)])
    write_csv(out / "linear.csv", [list(sizes[0]), *([*row.values()] for row in sizes)])
    totals = {"wrong": sum(row["wrong"] for row in events), "lost": sum(row["lost"] for row in events)}
    command = apart.typed("sweeps", out, quick)
    counts = {kind: sum(row["kind"] == kind for row in events) for kind in KINDS}
    facts = {"events": kills, "seed": seed, **totals, "by_kind": counts, "linear": sizes}
    write_json(out / "manifest.json", manifest(command, **facts))
    lines = [f"{kills} events, seed {seed}: {totals['wrong']} wrong numbers, {totals['lost']} lost rows", ""]
    lines += [f"{kind:14}{n:5}" for kind, n in counts.items()]
    lines += ["", "Statements of SQL per point, and seconds, over the number of points"]
    lines += [f"{r['points']:6}{r['statements'] / r['points']:8.2f}{r['seconds']:9.2f} s" for r in sizes]
    return "\n".join(lines)


def killed(kills, seed=0, shown=None):
    """[{heading of kills.csv: value}] of so many events; those of a sweep that runs through in the end count as last of
    their folder. Raises SolveError where a sweep that nothing stopped ends with an error."""
    rng, rows = np.random.default_rng(seed), []
    while len(rows) < kills:
        with tempfile.TemporaryDirectory() as folder:
            some = min(PER_FOLDER, kills - len(rows))
            for row in _life(Path(folder), some, rng, len(rows)):
                rows.append(row)
                if shown is not None:
                    shown.update()
    return rows


def _life(folder, events, rng, first):
    """Rows of the events of one sweep."""
    out, now = folder / "out", {"factor": 1.5, "version": "one"}
    points, seen, factors = [], {}, {}
    for k in range(events):
        points = [*range(len(points), len(points) + MORE), *points]  # the new ones in front
        kind = str(rng.choice(KINDS))
        executor = "processes:2" if kind == "worker" or rng.random() < 0.25 else "serial"
        if kind == "order":
            points = [*rng.permutation(points).tolist()]
        if kind == "version":
            now["version"] = "two" if now["version"] == "one" else "one"
        if kind == "function":
            now["factor"] = {1.5: -2.25, -2.25: 1.5}[now["factor"]]
        base = out / "sweep.sqlite"
        most = int((base.stat().st_size if base.exists() else 8192) + rng.integers(9000)) if kind == "full disk" else 0
        processes = [_start(folder, out, executor, most, points, now) for _ in range(2 if kind == "two at once" else 1)]
        after, early = rng.uniform(0, 0.25), rng.random() < 0.1  # or before it has done anything
        outputs = _hit(kind, processes, base, len(seen), after, early and kind != "worker", rng)
        wrong = sum(_wrong_results(text, points, now["factor"]) for text in outputs)
        row = {"event": first + k + 1, "kind": kind, "executor": executor, "after [ms]": round(1000 * after)}
        row |= {
            "rows waited for": "no" if early and kind != "worker" else "yes",
            "exit": processes[0].returncode,
            "rows before": len(seen),
        }
        lost, bad, seen = _compared(base, seen, factors, now["factor"])
        yield row | {"rows after": len(seen), "wrong": wrong + bad, "lost": lost}
    for factor in (1.5, -2.25):
        seen = _finish(folder, points, seen, factors, {**now, "factor": factor})


def _hit(kind, processes, base, before, after, early, rng):
    """Let an event of this kind happen to the first process, `after` seconds after it has written a row (early: or
    none); the outputs of those that have to finish nevertheless."""
    hit = processes[0]
    try:
        for process in processes:
            process.stdout.readline()
        if not early:
            _wait_for_a_row(base, before, hit)
        time.sleep(after)
        if kind == "worker":
            _kill_worker(hit.pid, rng)
        elif kind != "full disk":
            hit.send_signal(signal.SIGINT if kind == "Ctrl-C" else signal.SIGKILL)
        if kind not in ("worker", "full disk"):
            hit.communicate(timeout=60)
        ended = [p.communicate(timeout=60) for p in processes if p is not hit or kind in ("worker", "full disk")]
    finally:
        for process in processes:
            process.kill()
            process.stdout.close()
    return [text for text, _ in ended] if kind in ("worker", "two at once") else []


def _finish(folder, points, seen, factors, now):
    """Run a sweep to its end without any event; its rows. SolveError if a result is wrong or a row is lost."""
    process, factor = _start(folder, folder / "out", "serial", 0, points, now), now["factor"]
    process.stdout.readline()
    text, _ = process.communicate(timeout=120)
    missing = _wrong_results(text, points, factor)
    lost, bad, seen = _compared(folder / "out" / "sweep.sqlite", seen, factors, factor)
    if missing or lost or bad:
        raise SolveError(f"sweep of {factor}: {missing} results differ, {lost} rows are lost, {bad} are wrong")
    return seen


def _wait_for_a_row(base, before, process):
    """Until there are more rows than before, or the process has ended; not for long: it may have other work first."""
    end = time.perf_counter() + 20
    while process.poll() is None and time.perf_counter() < end:
        if base.exists():
            with closing(Store(base)) as store:
                if len(store.rows("status = 'done'")) > before:
                    return
        time.sleep(0.02)


def _start(folder, out, executor, most, points, now):
    script = folder / f"victim_{now['factor']}.py"
    script.write_text(VICTIM.format(factor=now["factor"]))
    package = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join(p for p in (package, os.environ.get("PYTHONPATH", "")) if p)
    return subprocess.Popen(
        [sys.executable, str(script), json.dumps([str(out), executor, now["version"], most, points])],
        env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        preexec_fn=_listen,
    )  # fmt: skip


def _listen():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in background jobs


def _kill_worker(parent, rng):
    """SIGKILL to one of the processes that a process has started, if there is one by now."""
    try:
        listed = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(parent)], capture_output=True, text=True)
    except OSError:
        return
    workers = [int(line.split()[0]) for line in listed.stdout.splitlines() if "spawn_main" in line]
    if workers:
        with suppress(ProcessLookupError):  # it has ended
            os.kill(int(rng.choice(workers)), signal.SIGKILL)


def _wrong_results(text, points, factor):
    """How many results of a sweep that ran through are not what they should be."""
    try:
        results, failed = json.loads(text)
    except ValueError:
        return len(points)
    return len(failed) + sum(a != factor * x for a, x in zip(results, points, strict=True))


def _compared(base, seen, factors, factor):
    """(rows that were there and are not any more, rows that are wrong, {key: when it was written} of all done).

    factors: {digest of the function: factor}, filled as functions appear.
    """
    if not base.exists():
        return len(seen), 0, {}
    with closing(Store(base)) as store:
        rows = [row for row in store.rows() if row["status"] == "done"]
    for row in rows:
        factors.setdefault(row["function"], factor)  # the first of a new one is of the sweep that has just run
    bad = sum(_number(row) != factors[row["function"]] * json.loads(row["arguments"])["x"] for row in rows)
    written = {row["key"]: row["written"] for row in rows}
    return sum(written.get(key) != when for key, when in seen.items()), bad, written


def _number(row):
    if row["kind"] != "trajectory":
        return json.loads(row["result"])["value"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npz"
        path.write_bytes(row["result"])
        return float(Trajectory.load(path).pieces[0, 0, 0])


# -- growth ---------------------------------------------------------------------------------------------------------


def linear(sizes):
    """[{"points", "statements", "seconds", "statements again", "seconds again"}]: of a sweep, and of one that finds all
    results there."""
    rows = []
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            row = {"points": n}
            for again in ("", " again"):
                start = time.perf_counter()
                row[f"statements{again}"] = statements(lambda n=n, f=folder: _many(n, f))
                row[f"seconds{again}"] = round(time.perf_counter() - start, 3)
            rows.append(row)
    return rows


def _many(n, folder):
    return sweep(_double, [{"x": float(x)} for x in range(n)], out=Path(folder) / "many.csv", progress=False)


def _double(x):
    return 2 * x


def statements(call):
    """How many statements of SQL a call needs."""
    count, connected = [0], Store._connected

    def traced(self):
        connection = connected(self)
        connection.set_trace_callback(lambda _: count.__setitem__(0, count[0] + 1))
        return connection

    Store._connected = traced
    try:
        call()
    finally:
        Store._connected = connected
    return count[0]
