"""Ctrl-C while a solver runs: how long it takes until KeyboardInterrupt is raised, and whether it ever is not.

SIGINT is sent to a process of its own at random moments of a solve whose tolerance cannot be met, so that it would run
for long; in the same process it is then solved again, until the next signal. An iteration is the mean over a run.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import casadi as ca
import numpy as np

from ..files import write_csv
from ..optimal_control.problem import Problem
from ..runs.manifest import manifest, write_json
from ..runs.points import bar

_OF_UNO = ("primal_tolerance", "dual_tolerance", "loose_primal_tolerance", "loose_dual_tolerance")
ENDLESS = {  # options with which a solver continues after it has converged; fatrop still ends after a while
    "ipopt": {"tol": 1e-300, "acceptable_tol": 1e-300, "acceptable_iter": 0, "tiny_step_tol": 0.0, "max_iter": 10**8},
    "fatrop": {"tolerance": 1e-300, "max_iter": 10**8},
    "sqpmethod": {"tol_pr": 0.0, "tol_du": 0.0, "min_step_size": -1.0, "max_iter": 10**8},
    "uno": {**dict.fromkeys(_OF_UNO, 1e-300), "max_iterations": 10**8},
}
FIELDS = ("solver", "sent after [s]", "raised", "latency [s]", "latency [iterations]")
CAPTIONS = {"interrupts.csv": "SIGINT at random moments: what was raised, and how long after the signal."}
SECONDS = 1.0  # within which the signal comes


def problem(nodes=200, n=4):
    """Coupled pendulums with friction that changes its sign, from near rest to near upright, on `nodes` intervals."""
    ocp = Problem(nodes, 8.0)
    q, v = ocp.state("q", n, lower=-9, upper=9), ocp.state("v", n)
    u = ocp.control("u", n, lower=-1, upper=1)
    ocp.rate(q, v)
    ocp.rate(v, -9 * ca.sin(q) + 3 * ca.sin(ca.vertcat(q[1:], q[0])) * v + u)
    ocp.start({q: 0.1, v: 0})
    ocp.goal({q: 3, v: 0})
    ocp.minimize(integral=ca.sumsqr(u))
    return ocp


def run(out, quick=False, progress=None):
    """Measure and write interrupts.csv and manifest.json to the folder `out`; returns the table as a text.

    quick: 2 signals a solver instead of 20. progress: show a bar on stderr; default on a terminal only.
    """
    many, seed, rows = (2 if quick else 20), 0, []
    with bar(progress, many * len(ENDLESS), "interrupts", " signals") as shown:
        for solver in ENDLESS:
            iteration, outcomes = interrupted(solver, many, seed)
            rows += [[solver, f"{w:.3f}", kind, f"{x:.4f}", f"{x / iteration:.1f}"] for w, kind, x in outcomes]
            shown.update(many)
    folder = Path(out)
    write_csv(folder / "interrupts.csv", [FIELDS, *rows])
    command = "oc-dyn study interrupts" + (" --quick" if quick else "")
    worst = {s: max(float(r[3]) for r in rows if r[0] == s) for s in ENDLESS}
    lost = sum(r[2] != "KeyboardInterrupt" for r in rows)
    write_json(folder / "manifest.json", manifest(command, seed=seed, signals=len(rows), lost=lost, slowest=worst))
    slowest = ", ".join(f"{s} {x:.3f} s" for s, x in worst.items())
    return f"{len(rows)} signals, {lost} lost; slowest: {slowest}"


def interrupted(solver, many, seed=0, within=SECONDS):
    """(seconds of an iteration, [(sent after [s], what was raised, seconds after the signal)]) of so many solves."""
    rng, outcomes = np.random.default_rng(seed), []
    words = [sys.executable, "-m", __name__, solver]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            iteration = json.loads(process.stdout.readline())
            for after in rng.uniform(0, within, many):
                print("go", file=process.stdin, flush=True)
                process.stdout.readline()
                time.sleep(after)
                sent = time.monotonic()
                os.kill(process.pid, signal.SIGINT)
                kind, at = json.loads(process.stdout.readline())
                outcomes.append((after, kind, at - sent))
        finally:
            process.kill()
    return iteration, outcomes


def _solve_when_asked(solver):
    """The process that is interrupted: solves whenever it reads a line, and prints how that ended and when."""
    heard: list[int] = []

    def handler(number, frame):
        heard.append(number)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, handler)  # it is ignored in background jobs of a shell
    ocp, known = problem(), 10
    options = {key: known if key.startswith("max_iter") else x for key, x in ENDLESS[solver].items()}
    ocp.solve(solver=solver, solver_options=options, raises=False)
    begun = time.monotonic()
    ocp.solve(solver=solver, solver_options=options, raises=False)
    print(json.dumps((time.monotonic() - begun) / known), flush=True)
    while True:
        sys.stdin.readline()
        heard.clear()
        try:
            print("begun", flush=True)
            while not heard:  # fatrop may end before the signal comes
                kind = ocp.solve(solver=solver, solver_options=ENDLESS[solver], raises=False).status
        except KeyboardInterrupt:
            kind = "KeyboardInterrupt"
        except Exception as error:
            kind = type(error).__name__
        print(json.dumps([kind, time.monotonic()]), flush=True)


if __name__ == "__main__":
    _solve_when_asked(sys.argv[1])
