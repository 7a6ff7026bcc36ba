"""Controllers and laws in C under NaN, infinities, 1e300, jumps and dropouts, with the sanitizers of the compiler.

Bursts of up to 12 samples are spoilt, six in a hundred begin one; what is wanted stays as it is. A twin is given the
good samples alone: after so many of them (BACK) the outputs are compared with the twin's.
"""

import json
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import casadi as ca
import numpy as np

from ...codegen.build import find_compiler
from ...control.mpc import mpc
from ...elastic import elastic_robot, feedback_linearization, feedforward_pd, generate_controller, gravity_pd
from ...errors import SolveError
from ...files import write_csv
from ...interrupts import command
from ...optimal_control.problem import Problem
from ...robots import planar_arm
from ...runs.manifest import manifest, write_json
from ...runs.points import bar as progress_bar
from ...text import in_columns
from .. import apart
from .tracking import HOME, Setting, controller

SANITIZERS = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
BACK = 5  # good samples after which a controller is itself again
BURSTS, LONGEST, STATUSES = 0.06, 12, 7
SAMPLE_TIME = 1e-3  # of the laws [s]
STEPS, QUICK_STEPS = {"panda": 10_000}, {"panda": 50}  # of one; of the others:
MANY, QUICK_MANY = 1_000_000, 2_000
FIELDS = ("what", "steps", "bursts", "outputs outside", "memory broken", "other statuses", "not back in time")
FIELDS += ("slowest way back", "from the twin", "twin not ok", f"statuses 0 to {STATUSES - 1}", "seconds")
CAPTIONS = {
    "fuzz.csv": "Steps in C under the sanitizers of addresses and of undefined behaviour. outputs outside: of their "
    f"bounds; not back in time: steps not ok {BACK} or more good samples after a burst; slowest way back: good samples "
    "until the first step that is ok; from the twin: largest distance from the outputs of an instance that was "
    f"given the good samples alone, {BACK} or more good samples after a burst, over their range.",
}


@dataclass(frozen=True, eq=False)
class Subject:
    """What is stepped: name of the C product in `folder`, bounds of the outputs, the good samples.

    Good samples are middle + swing sin(rate k), (inputs,), those of `measured` get spoilt.
    """

    name: str
    folder: Path
    sources: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    middle: np.ndarray
    swing: np.ndarray
    rate: np.ndarray
    measured: np.ndarray


def spring_mass(h=0.05):
    """Problem of a mass on a spring that is not linear, six intervals of h [s], limits of its speed and force."""
    ocp = Problem(6, 6 * h)
    x, v = ocp.state("x", lower=-2, upper=2), ocp.state("v", lower=-1, upper=1)
    u = ocp.control("u", lower=-3, upper=3)
    ocp.next(x, x + h * v)
    ocp.next(v, v + h * (u - ca.sin(x)))
    ocp.start({x: ocp.parameter("x_now"), v: ocp.parameter("v_now")})
    ocp.minimize(squares=ca.vertcat(x - ocp.varying("r"), 0.3 * v, 0.1 * u))
    ocp.minimize(terminal=5 * v**2)
    return ocp


def small(folder):
    """Subject: the mass on a spring."""
    control = mpc(spring_mass(), method="euler", name="small")
    control.codegen(folder)
    middle, swing, rate = np.zeros(9), np.zeros(9), np.zeros(9)
    swing[:2], rate[:2] = (0.5, 0.05), 0.1
    return _subject(control, folder, middle, swing, rate, 2)


def panda(folder, iterations=1):
    """Subject: the controller of the study, one iteration a step."""
    setting = Setting()
    control = controller(setting, iterations=iterations, name="panda")
    control.codegen(folder)
    r = np.tile(HOME, setting.nodes + 1)
    middle = np.concatenate([HOME, np.zeros(7), r])
    swing, rate = np.zeros(middle.size), np.zeros(middle.size)
    swing[:7], swing[7:14], rate[:14] = 0.1, 0.02, 0.05
    return _subject(control, folder, middle, swing, rate, 14)


def _subject(control, folder, middle, swing, rate, measured):
    lower, upper = (np.concatenate([b[side] for b in control.bounds.values()]) for side in (0, 1))
    sources = (f"{control.name}.c",)
    return Subject(control.name, Path(folder), sources, lower, upper, middle, swing, rate, np.arange(measured))


def laws(folder):
    """[Subject]: laws of an arm of two elastic joints."""
    arm, limit = elastic_robot(planar_arm(2, 0.4, 3.0), np.array([500.0, 300.0]), motor_inertia=(0.3, 0.2)), 80.0
    made = {
        "linearizing": feedback_linearization(arm, 20.0),
        "feedforward": feedforward_pd(arm, 200.0, 20.0),
        "holding": gravity_pd(arm, 200.0, 20.0),
    }
    return [_law(Path(folder) / name, name, law, limit) for name, law in made.items()]


def _law(folder, name, law, limit):
    generate_controller(law, folder, sample_time=SAMPLE_TIME, torque_limit=limit, name=name)
    names, f = law.function.name_in(), law.function
    sizes = [f.size1_in(k) for k in range(f.n_in())]
    given = {"q": -0.2, "theta": -0.2, "q_ref": -0.2}
    middle = np.concatenate([np.full(n, given.get(k, 0.0)) for k, n in zip(names, sizes, strict=True)])
    swing, measured = np.full(middle.size, 0.01), []
    ends = np.cumsum([0, *sizes])
    for k, a, b in zip(names, ends[:-1], ends[1:], strict=True):
        measured += range(a, b) if not k.endswith("_ref") else []
    motors = np.full(f.size1_out(0), limit)
    rate, sources = np.full(middle.size, 0.01), (f"{name}.c", f"{name}_law.c")
    return Subject(name, folder, sources, -motors, motors, middle, swing, rate, np.array(measured))


def fuzzed(subject, steps, seed=0, flags=SANITIZERS, limit=7200.0):
    """{"outside", "broken", "late", ...: counts} of a run. SolveError where it ends with what a sanitizer says."""
    folder = subject.folder
    (folder / "settings.h").write_text(_settings(subject, steps, seed), encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        program = Path(place) / "fuzz"
        source = str(Path(__file__).with_name("fuzz.c"))
        sources = [source, *(str(folder / s) for s in subject.sources)]
        words = [*find_compiler(None), "-std=c99", *flags, f"-I{folder}", "-o", str(program), *sources, "-lm"]
        for what in (words, [str(program)]):
            done = command(what, timeout=limit)
            if done.returncode:
                said = " ".join(done.stderr.split())[:500]
                raise SolveError(f"fuzz of {subject.name}: ended with status {done.returncode}: {said}")
    return json.loads(done.stdout)


def _settings(subject, steps, seed):
    n = subject.name
    names = {"TYPE": f"{n}_t", "INPUT": f"{n}_in", "OUTPUT": f"{n}_out", "INIT": f"{n}_init", "STEP": f"{n}_step"}
    numbers = {"INPUTS": subject.middle.size, "OUTPUTS": subject.lower.size, "MEASURED": subject.measured.size}
    numbers |= {"STEPS": int(steps), "BURSTS": BURSTS, "LONGEST": LONGEST, "STATUSES": STATUSES, "BACK": BACK}
    lines = [f'#include "{n}.h"', f"#define SEED UINT64_C({0x9E3779B97F4A7C15 ^ (int(seed) + 1)})"]
    lines += [f"#define {k} {x}" for k, x in (names | numbers).items()]
    for k in ("lower", "upper", "middle", "swing", "rate"):
        lines.append(f"static const double {k}[] = {{{', '.join(f'{x:.17g}' for x in getattr(subject, k))}}};")
    lines.append(f"static const int measured[] = {{{', '.join(map(str, subject.measured))}}};")
    return "\n".join(lines) + "\n"


def run(out, quick=False, progress=None):
    """Fuzz a small controller, the Panda's and laws of elastic joints; returns the table as a text.

    out: folder for fuzz.csv and manifest.json. quick: few steps. progress: show a bar on stderr; default on a terminal
    only. Raises SolveError where a sanitizer ends a program.
    """
    out, rows = Path(out), []
    few, many = (QUICK_STEPS, QUICK_MANY) if quick else (STEPS, MANY)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subjects = [small(folder / "small"), panda(folder / "panda"), *laws(folder / "laws")]
        many_at_once = ThreadPoolExecutor(len(subjects))  # each waits for its program
        with many_at_once as threads, progress_bar(progress, len(subjects), "mpc_fuzz", " subjects") as bar:
            for one in threads.map(lambda s: _timed(s, few.get(s.name, many)), subjects):
                rows.append(one)
                bar.update()
    write_csv(out / "fuzz.csv", [FIELDS, *rows])
    command_ = apart.typed("mpc_fuzz", out, quick)
    facts = {"back": BACK, "bursts": BURSTS, "longest": LONGEST, "flags": SANITIZERS}
    write_json(
        out / "manifest.json", manifest(command_, **facts, fuzz=[dict(zip(FIELDS, r, strict=True)) for r in rows])
    )
    return in_columns([FIELDS, *rows])


def _timed(subject, steps):
    begun = time.perf_counter()
    found = fuzzed(subject, steps)
    return [*row(subject.name, found), f"{time.perf_counter() - begun:.0f}"]


def row(name, found):
    """A row of FIELDS, but for the seconds."""
    kinds = " ".join(map(str, found["statuses"]))
    shown = ("steps", "bursts", "outside", "broken", "unknown", "late", "slowest")
    return [name, *(found[k] for k in shown), f"{found['away']:.2g}", found["twins"], kinds]
