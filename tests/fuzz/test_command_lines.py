"""Command lines of all kinds: one line on stderr and status 2, whatever the words; nothing is left behind."""

import sys

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import cli, study

START, GOAL = "0,-0.78,0,-2.36,0,1.57,0.78", "0.3,-0.5,0.1,-2.2,-0.1,1.7,0.5"
ENDS = [f"--from={START}", f"--to={GOAL}"]
OPTIONS = {
    "demo": ["--out", "--nodes"],
    "plan": [
        *("--from", "--to", "--via", "--path", "--out", "--continuity", "--objective", "--duration", "--nodes"),
        *("--scale", "--ignore", "--lock", "--limits", "--solver", "--dt"),
    ],
    "study": ["--executor", "--out"],
    "codegen": ["--quantity", "--order", "--method", "--option", "--out", "--name", "--lock"],
    "list": ["--update"],
}
REQUIRED = {
    "demo": [],
    "plan": ["panda", *ENDS, "--out", "o"],
    "study": ["growth"],
    "codegen": ["planar_2r", "--quantity", "com", "--out", "o"],
    "list": [],
}
VALUES = (
    "--", "-", "", " ", "chain:" + "9" * 200, "\x00", "a\x00b", "\ud800", "a\udc80", "\x1b[31m", "\n", "\u202e",
    "1_000", "1_0.5", "１２", "1e", "nan", "-inf", "1e400", "9" * 5000, "-1", "=", "a=", "=1", "a=b=c",
    "panda_joint1=nan", "panda_joint1=1_0", "v=--", "v=1_0", "x" * 5000, "/dev/null/x", "..", "/", "$(id)",
    "`id`", "%s%n", "--quiet", "--help=--", "frame=\udc80", "order=1", "prescribed=,", "chain:" + "9" * 5000,
    "processes:1_0", "processes:" + "9" * 5000, "dask:", "dask:\x00", "[1,2", "1;2", "name=x", "method=x",
)  # fmt: skip


@pytest.fixture
def refused(capsys, tmp_path, monkeypatch):
    """What a command says that must fail; nothing is computed or written."""
    monkeypatch.chdir(tmp_path)

    def reached(*_, **__):
        raise od.SolveError("REACHED")

    for what in ("plan_point_to_point", "plan_along_path", "codegen"):
        monkeypatch.setattr(od, what, reached)
    monkeypatch.setattr("oc_dyn.demo.plan", reached)
    monkeypatch.setattr(study, "run", reached)

    def run(words):
        status = cli.main(words)
        out, err = capsys.readouterr()
        assert status == 2, (words, err)
        assert err.endswith("\n"), (words, err)
        assert err[:-1].isprintable(), (words, err)
        assert "internal error" not in err, (words, err)
        assert "Traceback" not in err, (words, err)
        assert list(tmp_path.iterdir()) == []
        return err

    return run


CASES = [(command, option) for command, options in OPTIONS.items() for option in options]


@pytest.mark.few(20)
@pytest.mark.sample(1)
@pytest.mark.parametrize("share", [8, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("command, option", CASES)
def test_every_value_of_every_option(command, option, share, refused):
    """All values; by default another eighth of them for each option."""
    for value in VALUES[CASES.index((command, option)) % share :: share]:
        for words in ([f"{option}={value}"], [option, value], [option, value, "x"]):
            given = [command, *REQUIRED[command], *words]
            if value == "--quiet" and len(words) > 1:
                continue  # an option of its own
            if command == "list" and len(words) < 3 and value == "--quiet":
                continue
            refused(given)


@pytest.mark.parametrize(
    "words, said",
    [
        (["plan", "panda", "--from=--", f"--to={GOAL}", "--out", "o"], "argument --from: got '--', expected a value"),
        (["plan", "panda", *ENDS, "--limits=--", "--out", "o"], "argument --limits: got '--', expected a value"),
        (["codegen", "panda", "--quantity", "com", "--option=--", "--out", "o"], "argument --option: got '--'"),
        (["plan", "panda", *ENDS, "--out", "a\0b"], r"argument a\x00b: it contains a NUL character"),
        (
            ["codegen", "panda", "--quantity", "com", "--order=1_000", "--out", "o"],
            "invalid whole number value: '1_000'",
        ),
        (["plan", "panda", *ENDS, "--nodes=1_0", "--out", "o"], "invalid whole number value: '1_0'"),
        (["plan", "panda", *ENDS, "--dt=1_0", "--out", "o"], "invalid number value: '1_0'"),
        (["plan", "panda", *ENDS, "--lock", "panda_joint1=1_0", "--out", "o"], "expected NAME=NUMBER"),
        (["plan", "pan\udc80", *ENDS, "--out", "o"], r"no file or robot 'pan\udc80'"),
        (["plan", f"chain:{'9' * 200}", *ENDS, "--out", "o"], "no embedded robot 'chain:999"),
        (["plan", "panda", "--path", sys.executable, "--out", "o"], "not UTF-8 text"),
        (["list", "--update", sys.executable], "not UTF-8 text"),
    ],
)
def test_what_is_said(words, said, refused):
    assert said in refused(words)


def vectors(seed, count):
    rng = np.random.default_rng(seed)
    every = [*VALUES, *OPTIONS, *{x for options in OPTIONS.values() for x in options}, *ENDS, "panda", "com", "o"]
    every = [x for x in every if x != "--quiet"]
    for _ in range(count):
        words = [every[k] for k in rng.integers(len(every), size=rng.integers(0, 9))]
        words = [
            f"{w}={every[rng.integers(len(every))]}" if w.startswith("--") and rng.random() < 0.5 else w for w in words
        ]
        yield [str(rng.choice(list(OPTIONS))), *words]


@pytest.mark.few(8)
@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, 20))])
def test_random_words(seed, refused, capsys):
    for words in vectors(seed, 150):
        if "list" in words[:1] and not any("update" in w for w in words):
            continue  # a table is printed
        if words[:2] == ["study", "list"]:
            continue
        refused(words)


@pytest.mark.parametrize("text", ["\udc80", "\x1b[31m", "a\nb"])
def test_a_folder_of_such_a_name_can_be_written_to(text, capsys, tmp_path, monkeypatch):
    """Names of files may be any bytes; what is printed of them is plain."""
    monkeypatch.chdir(tmp_path)
    status = cli.main(["codegen", "planar_2r", "--quantity", "com", "--out", text, "--name", "arm"])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    assert out.replace("\n", "").isprintable()
    assert sorted(x.name for x in (tmp_path / text).iterdir())[0] == "CMakeLists.txt"


def test_scripts_read_words_as_the_command_does(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "small_problem.py").write_text(
        '"""A problem."""\nfrom dataclasses import dataclass\nimport oc_dyn as od\n'
        "@dataclass(frozen=True)\nclass Config:\n    n: int = 3\n"
        'def solve(run, cfg):\n    raise od.ShapeError(f"n is {cfg.n!r}\\x1b")\n'
        "main = od.script(solve, Config())\n"
    )
    import small_problem

    for words in (["--set=--"], ["--out=--"], ["--out", "a\0b"], ["--set", "n=\ud800"], ["--what\x1b"]):
        with pytest.raises(SystemExit) as stop:
            small_problem.main(words)
        assert stop.value.code == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert err[:-1].isprintable()
    for words in (["--set", "n=\udc80"], ["--set", "n=" + "(" * 300], ["--set", "n=1"], ["--set", "n={[]: 1}"]):
        assert small_problem.main(words) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert err[:-1].isprintable()
