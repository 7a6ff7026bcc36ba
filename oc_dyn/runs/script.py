"""od.script: a problem's file as a command, so that what is left in the file is the problem."""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from .._moved import renamed
from ..command_line import Parser
from ..drawing import styled
from ..errors import ALL, ShapeError, UnknownName
from ..files import replacing, together, write_csv
from ..interrupts import watched
from ..numbers import shortened
from ..text import terminal, terminal_lines
from .manifest import manifest, write_json


def results_folder(name: str, quick: bool = False) -> Path:
    """Where a problem or study writes by default: committed results are only overwritten by a full run."""
    return Path("results", *(["quick"] if quick else []), name)


C = TypeVar("C")  # a dataclass of settings


def script(
    solve: Callable[[ProblemRun, C], object],
    config: C,
    quick: Mapping[str, Any] | None = None,
) -> Callable[..., int]:
    """main(argv=None, **changes) -> exit status, of a file that solves a problem.

        def solve(run, cfg): ...
        main = od.script(solve, Config(), quick={"nodes": 10})
        if __name__ == "__main__":
            sys.exit(main())

    solve: takes a ProblemRun and the settings. config: the settings, a dataclass. quick: changes to them for --quick.
    main takes --quick, --quiet, --out DIR (default: results/NAME, with --quick results/quick/NAME) and --set NAME=VALUE
    for any setting; changes: the same from Python. The folder gets what solve writes and manifest.json, all at the end.
    Status: 0; 1 if a check fails; 2, with the message, if one of the errors of oc_dyn is raised; 130 after Ctrl-C,
    when nothing is written.
    """
    file, doc = solve.__globals__["__file__"], solve.__globals__["__doc__"] or ""
    name, settings = Path(file).stem, cast(Any, config)

    def main(argv: Sequence[Any] | None = None, **changes: Any) -> int:
        words = sys.argv[1:] if argv is None else [str(w) for w in argv]
        parser = Parser(description=(doc.splitlines() or [name])[0])
        help = f"folder for the results ({results_folder(name)}, with --quick {results_folder(name, quick=True)})"
        parser.add_argument("--out", type=Path, metavar="DIR", help=help)
        parser.add_argument("--quick", action="store_true", help="a smaller run, with fewer pictures")
        parser.add_argument("--quiet", action="store_true", help="print nothing")
        help = f"change a setting: one of {', '.join(f.name for f in fields(settings))}"
        parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help=help)
        options = parser.parse_args(words)
        out = options.out or results_folder(name, options.quick)
        try:
            cfg = replace(settings, **((quick or {}) if options.quick else {}))
            cfg = replace(cfg, **dict(_setting(text, cfg) for text in options.set), **changes)
            with watched(), together(out) as part:
                run = ProblemRun(part, options.quick, print if not options.quiet else lambda *_: None)
                solve(run, cfg)
                passed = all(check["passed"] for check in run.checks.values())
                command = ["python", f"problems/{name}.py", *words]
                facts = {"config": asdict(cfg), **run.facts, "passed": passed, "checks": run.checks}
                write_json(part / "manifest.json", manifest(command, **facts))
        except KeyboardInterrupt:
            print(f"{name}: stopped", file=sys.stderr)
            return 130
        except (*ALL, OSError) as error:  # the last of the disk, or of a program that is called
            print(terminal_lines(f"{name}: {error}"), file=sys.stderr)
            return 2
        run.say(f"written to {terminal(out)}")
        return 0 if passed else 1

    return main


class ProblemRun:
    """One run of a problem. out: folder of the results; quick; say: prints; facts: further entries of the manifest."""

    def __init__(self, out: Path, quick: bool, say: Callable[..., object]) -> None:
        self.out, self.quick, self.say = out, quick, say
        self.facts: dict[str, Any] = {}
        self.checks: dict[str, dict[str, Any]] = {}

    def check(
        self, what: str, value: Any = None, *old: float, below: float | None = None, above: float | None = None,
        equals: Any = None, within: float | None = None, holds: bool | None = None, error: Any = None,
    ) -> bool:  # fmt: skip
        """Check a number, or whether something holds; print it and store it in the manifest. The run fails if it fails.

        below, above: strict bounds of the value, either or both. equals: the value expected, exactly or, with
        within, to less than this absolute difference. holds: a condition, without a value or with one to be printed.
        Returns whether the check passed. ShapeError for other combinations, a name used before, or what is no number.
        """
        if old or error is not None:
            text = "check(what, error, below) is written check(what, value, below=...) now"
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            value, (below, *_) = value if error is None else error, (*old, below)
        bounds = {"below": below, "above": above, "equals": equals, "within": within, "holds": holds}
        bounds = {name: x for name, x in bounds.items() if x is not None}
        if what in self.checks:
            raise ShapeError(f"check {what!r}: there is one of that name already")
        if bounds.keys() not in _COMBINATIONS:
            raise ShapeError(
                f"check {what!r}: got {' and '.join(bounds) or 'no bound'}, expected below and/or above, "
                "equals with or without within, or holds"
            )
        value, bounds = _numbers_of_check(what, value, bounds)
        passed = all(_TESTS[name](value, bounds) for name in bounds)
        self.checks[what] = {"value": value, **bounds, "passed": passed}
        self.say(f"{what:72} {_told(value, bounds, passed)}")
        return passed

    def table(self, name: str, columns: Mapping[str | tuple[str, ...], Any]) -> None:
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
    def figure(
        self, name: str, *titles: str, columns: int | None = None, size: tuple[float, float] | None = None,
        xlabel: str = "time [s]",
    ) -> Iterator[Any]:  # fmt: skip
        """Axes to draw on, one per title, `columns` in a row; the PNG is written at the end of the block."""
        from matplotlib.figure import Figure

        columns = columns or len(titles)
        rows = -(-len(titles) // columns)
        with styled():
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


_COMBINATIONS = [{"below"}, {"above"}, {"below", "above"}, {"equals"}, {"equals", "within"}, {"holds"}]
_TESTS = {  # of a value, and of the bounds of its check; false for what is not a number
    "below": lambda value, bounds: value < bounds["below"],
    "above": lambda value, bounds: value > bounds["above"],
    "equals": lambda value, bounds: "within" in bounds or value == bounds["equals"],
    "within": lambda value, bounds: abs(value - bounds["equals"]) < bounds["within"],
    "holds": lambda value, bounds: bounds["holds"],
}


def _numbers_of_check(what: str, value: Any, bounds: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The value and the bounds of a check as floats, `holds` as a bool."""
    out: dict[str, Any] = {}
    for name, x in {"value": value, **bounds}.items():
        if name == "value" and x is None and "holds" in bounds:
            out[name] = None
            continue
        try:
            out[name] = bool(x) if name == "holds" else float(x)
        except (TypeError, ValueError):
            raise ShapeError(f"check {what!r}: {name} is {shortened(x)}, expected a number") from None
    return out.pop("value"), out


def _told(value: Any, bounds: dict[str, Any], passed: bool) -> str:
    """One check as printed: the value, whether it passed, the bounds."""
    shown = " " * 10 if value is None else f"{value:10.3e}"
    if "holds" in bounds:
        return f"{shown}  {'holds' if passed else 'DOES NOT HOLD'}"
    if "equals" in bounds:
        tolerance = f" within {bounds['within']:.3e}" if "within" in bounds else ""
        return f"{shown}  {'equals' if passed else 'DOES NOT EQUAL'} {bounds['equals']:.6g}{tolerance}"
    words = [f"{name} {bounds[name]:.3e}" for name in ("below", "above") if name in bounds]
    return f"{shown}  {'is' if passed else 'IS NOT'} {' and '.join(words)}"


def _setting(text: str, cfg: Any) -> tuple[str, Any]:
    name, _, value = text.partition("=")
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


__getattr__ = renamed(__name__, {"Run": "ProblemRun"})
