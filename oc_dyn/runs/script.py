"""od.script: a problem's file as a command, so that what is left in the file is the problem."""

import ast
import sys
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path

import numpy as np

from ..command_line import Parser
from ..errors import ALL, ShapeError, UnknownName
from ..files import replacing, together, write_csv
from ..interrupts import watched
from ..text import terminal, terminal_lines
from .manifest import manifest, write_json


def script(solve, config, quick=None):
    """main(argv=None, **changes) -> exit status, of a file that solves a problem:

        def solve(run, cfg): ...
        main = od.script(solve, Config(), quick={"nodes": 10})
        if __name__ == "__main__":
            sys.exit(main())

    solve: gets a Run, and the settings. config: those, a dataclass. quick: changes of them by --quick. main takes
    --quick, --quiet, --out DIR (results/<name of the file> by default) and --set NAME=VALUE for any setting; changes:
    the same from Python. The folder gets what solve writes, and manifest.json, all at the end. Status: 0; 1 if a check
    fails; 2, with the message, for what is refused: one of the errors of oc_dyn; 130 after Ctrl-C, and nothing is
    written.
    """
    file, doc = solve.__globals__["__file__"], solve.__globals__["__doc__"] or ""
    name = Path(file).stem

    def main(argv=None, **changes):
        words = sys.argv[1:] if argv is None else [str(w) for w in argv]
        parser = Parser(description=(doc.splitlines() or [name])[0])
        parser.add_argument("--out", type=Path, default=Path("results") / name, metavar="DIR", help="(%(default)s)")
        parser.add_argument("--quick", action="store_true", help="a smaller run, with fewer pictures")
        parser.add_argument("--quiet", action="store_true", help="print nothing")
        help = f"change a setting; there are {', '.join(f.name for f in fields(config))}"
        parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=help)
        options = parser.parse_args(words)
        try:
            cfg = replace(config, **((quick or {}) if options.quick else {}))
            cfg = replace(cfg, **dict(_setting(text, cfg) for text in options.set), **changes)
            with watched(), together(options.out) as part:
                run = Run(part, options.quick, print if not options.quiet else lambda *_: None)
                solve(run, cfg)
                passed = all(error < bound for error, bound in run.checked.values())
                checks = {what: {"error": error, "bound": bound} for what, (error, bound) in run.checked.items()}
                command = ["python", f"problems/{name}.py", *words]
                facts = {"config": asdict(cfg), **run.facts, "passed": passed, "checks": checks}
                write_json(part / "manifest.json", manifest(command, **facts))
        except KeyboardInterrupt:
            print(f"{name}: stopped", file=sys.stderr)
            return 130
        except (*ALL, OSError) as error:  # the last of the disk, or of a program that is called
            print(terminal_lines(f"{name}: {error}"), file=sys.stderr)
            return 2
        run.say(f"written to {terminal(options.out)}")
        return 0 if passed else 1

    return main


class Run:
    """What a problem's solve has: out, folder of the results; quick; say, which prints; facts for the manifest."""

    def __init__(self, out, quick, say):
        self.out, self.quick, self.say = out, quick, say
        self.facts, self.checked = {}, {}

    def check(self, what, error, below):
        """Say whether a number is below its bound, and keep it for the manifest; the run fails where it is not."""
        self.checked[what] = error, below = float(error), float(below)
        self.say(f"{what:72} {error:10.3e}  {'is' if error < below else 'IS NOT'} below {below:.3e}")

    def table(self, name, columns):
        """Write a CSV of {heading, or tuple of headings: (K,) or (K, n) numbers, or K texts}."""
        headings = [h for key in columns for h in ((key,) if isinstance(key, str) else key)]
        cells = []
        for x in columns.values():
            x = np.asarray(x)
            cells += list((x if x.dtype.kind in "OSU" else np.char.mod("%.9g", x.astype(float))).reshape(len(x), -1).T)
        if len(cells) != len(headings) or len({len(c) for c in cells}) > 1:
            sizes = [len(c) for c in cells]
            raise ShapeError(f"table {name}: {len(headings)} headings for {len(cells)} columns of {sizes} rows")
        write_csv(self.out / name, [headings, *zip(*cells, strict=True)])

    @contextmanager
    def figure(self, name, *titles, columns=None, size=None, xlabel="time [s]"):
        """Axes, one a title, to draw on, so many in a row; the PNG is written at the end of the block."""
        from matplotlib.figure import Figure

        columns = columns or len(titles)
        rows = -(-len(titles) // columns)
        figure = Figure(figsize=size or (4 * columns, 4 if rows == 1 else 3.2 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axis in axes[len(titles) :]:
            axis.remove()
        axes = axes[: len(titles)]
        for axis, title in zip(axes, titles, strict=True):
            axis.set(title=title, xlabel=xlabel)
            axis.grid(alpha=0.3)
        yield axes if len(axes) > 1 else axes[0]
        for axis in axes:
            if axis.get_legend_handles_labels()[1]:
                axis.legend(fontsize="small")
        with replacing(self.out / name) as part:
            figure.savefig(part, dpi=90, format="png")


def _setting(text, cfg):
    name, equals, value = text.partition("=")
    known = [f.name for f in fields(cfg)]
    if name not in known:
        raise UnknownName("setting", name, known)
    try:
        value = ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise ShapeError(f"--set {text}: expected {name}=VALUE, a number or a tuple of numbers") from None
    is_now = getattr(cfg, name)
    if isinstance(is_now, tuple) != isinstance(value, tuple):
        raise ShapeError(f"--set {text}: {name} is {is_now!r}; got {value!r}")
    if isinstance(value, tuple) and len(value) != len(is_now):
        raise ShapeError(f"--set {text}: {name} has {len(is_now)} values, {is_now!r}; got {len(value)}")
    return name, value
