"""The command line for terminals of 80 columns, for machines, and for shells that complete words."""

import io
import json
import math
import shutil
import subprocess

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import cli, completion, listing
from oc_dyn.command_line import fitted, width_of


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.mark.parametrize("words", ["list", "doctor", "describe inverse_dynamics", "check panda", "study list"])
def test_all_fits_into_80_columns_of_a_terminal(words, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)  # here, as pytest sets its own after fixtures
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(words.split()) == 0
    lines = terminal.getvalue().splitlines()
    assert len(lines) > 2
    assert max(map(len, lines)) <= 80


def test_a_pipe_gets_whole_lines(capsys):
    assert cli.main(["list"]) == 0
    assert capsys.readouterr().out.strip() == od.table().strip()


def test_the_listing_has_every_method_and_word():
    text = listing.listing(80)
    for quantity in od.quantities():
        assert f"\n{quantity}\n" in f"\n{text}"
    words = " ".join(text.split())
    for r in listing.records():
        assert f"{r['method']} " in text
        assert " ".join(r["source"].split()) in words
    stars = sum(line.startswith("  * ") for line in text.splitlines())
    assert stars == sum(r["default"] for r in listing.records())


def test_lines_break_below_their_last_column():
    line = "name        what it is, in many words that go on and on"
    assert fitted(line, 30) == "name        what it is, in\n            many words that go\n            on and on"
    assert fitted("short\n" + "x" * 90, 80) == "short\n" + "x" * 90  # no word is cut
    assert " ".join(fitted(line, 30).split()) == " ".join(line.split())
    assert fitted("    " + "word " * 30, 40).splitlines()[1].startswith("        word")


def test_streams_without_a_terminal_have_no_width():
    assert width_of(io.StringIO()) is None
    assert width_of(None) is None
    closed = io.StringIO()
    closed.close()
    assert width_of(closed) is None


def test_list_as_json_is_the_table(capsys):
    assert cli.main(["list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(r["quantity"], r["method"]) for r in rows] == [(q, m) for q in od.quantities() for m in od.methods(q)]
    marked = [f"{r['method']} (default)" if r["default"] else r["method"] for r in rows]
    table = od.table(markdown=True).splitlines()[2:]
    assert marked == [line.split(" | ")[1] for line in table]


def test_records_of_plans_hold_numbers_that_json_has():
    joints, pieces = ("a", "b"), np.zeros((1, 4, 2))
    pieces[0, 1] = [1.0, -3.0]
    plan = od.Trajectory([0, 1], pieces, joints=joints, units=("rad", "m"), limits=od.Limits(joints, v=2.0))
    told = listing.plan_record(plan, plan.check(), "out", ["plan.csv"])
    assert json.loads(json.dumps(told, allow_nan=False)) == told
    assert told["within_limits"] is False
    speed = next(r for r in told["limits"] if r["quantity"] == "v")
    assert (speed["joint"], speed["value"], abs(speed["limit"]), speed["joint_unit"]) == ("b", -3.0, 2.0, "m")
    assert told["worst_share"] == speed["share"] == pytest.approx(1.5)
    assert [r["limit"] for r in told["limits"] if r["quantity"] == "q"] == [None]


@pytest.mark.slow
def test_plan_as_json_is_one_record(tmp_path, capsys):
    way = ["--from", "0,0", "--to", "0.5,0.2", "--nodes", "8"]
    status = cli.main(["plan", "planar_2r", *way, "--json", "--report", "--out", str(tmp_path / "out")])
    told = json.loads(capsys.readouterr().out, parse_constant=lambda x: pytest.fail(f"{x} is no JSON"))
    assert status == 0
    assert told["within_limits"] is True
    assert told["end"] == pytest.approx([0.5, 0.2], abs=1e-6)
    assert sorted(told["files"]) == sorted(p.name for p in (tmp_path / "out").iterdir())
    assert "report.html" in told["files"]
    plan = od.Trajectory.load(tmp_path / "out" / "plan.npz", od.robots.planar_2r())
    assert told["duration"] == plan.duration
    rows = plan.check().rows
    assert [r["quantity"] for r in told["limits"]] == [r.quantity for r in rows]
    for r, row in zip(told["limits"], rows, strict=True):
        assert r["share"] == pytest.approx(row.share)
        assert (r["limit"] is None) == (not math.isfinite(row.limit))


# -- completion -------------------------------------------------------------------------------------------------


def script(shell, capsys):
    assert cli.main(["completion", shell]) == 0
    return capsys.readouterr().out


def in_bash(text, words, folder, shell="bash"):
    """What Tab offers behind words."""
    quoted = " ".join(completion._quoted(w) for w in words)
    ask = f"{text}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _oc_dyn; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run([shell, "-c", ask], capture_output=True, text=True, cwd=folder, check=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


ASKED = {  # words: some of what is offered, what is not
    ("oc-dyn", "pl"): (["plan"], ["list"]),
    ("oc-dyn", ""): (["plan", "list", "--version"], []),
    ("oc-dyn", "plan", "pan"): (["panda"], ["humanoid"]),
    ("oc-dyn", "plan", "arm"): (["arm of two.urdf"], []),
    ("oc-dyn", "plan", "panda", "--obj"): (["--objective"], ["--out"]),
    ("oc-dyn", "plan", "panda", "--objective", ""): (["time", "effort"], ["panda"]),
    ("oc-dyn", "describe", "inverse"): (["inverse_dynamics"], ["forward_dynamics"]),
    ("oc-dyn", "study", "gro"): (["growth"], ["peers"]),
    ("oc-dyn", "plan", "panda", "--out", "fol"): (["folder"], ["arm of two.urdf"]),
    ("oc-dyn", "completion", ""): (["bash", "zsh", "fish"], []),
}


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash")
def test_bash_offers_what_fits(tmp_path, capsys):
    (tmp_path / "arm of two.urdf").write_text("")
    (tmp_path / "folder").mkdir()
    text = script("bash", capsys)
    for words, (there, absent) in ASKED.items():
        offered = in_bash(text, words, tmp_path)
        assert set(there) <= set(offered), words
        assert not set(absent) & set(offered), words


@pytest.mark.skipif(not shutil.which("fish"), reason="no fish")
@pytest.mark.slow
def test_fish_offers_what_fits(tmp_path, capsys):
    (tmp_path / "arm of two.urdf").write_text("")
    (tmp_path / "folder").mkdir()
    (tmp_path / "script").write_text(script("fish", capsys))
    for words, (there, absent) in ASKED.items():
        if words[-1] in ("", "--obj") or "--out" in words:
            continue  # fish asks in its own way for these
        ask = f"source script; complete -C {completion._quoted(' '.join(words))}"
        env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
        done = subprocess.run(["fish", "-c", ask], capture_output=True, text=True, cwd=tmp_path, env=env, check=True)
        offered = [line.partition("\t")[0].replace("\\ ", " ") for line in done.stdout.splitlines()]
        assert set(there) <= set(offered), words
        assert not set(absent) & set(offered), words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_take_their_script(shell, capsys):
    text = script(shell, capsys)
    for word in ("plan", "objective", "panda", "inverse_dynamics", "growth"):
        assert word in text
    if shutil.which(shell):
        done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh")
@pytest.mark.slow
def test_zsh_offers_what_fits(tmp_path, capsys):
    text = script("zsh", capsys)
    ask = text + (
        '\nfunction compgen { /usr/bin/env bash -c \'compgen "$@"\' bash "$@" }\n'
        "COMP_WORDS=(oc-dyn plan pan); COMP_CWORD=2; emulate ksh -c '_oc_dyn; print -l ${COMPREPLY[*]}'\n"
    )
    done = subprocess.run(["zsh", "-f", "-c", ask], capture_output=True, text=True, cwd=tmp_path)
    assert "panda" in done.stdout.split(), done.stderr
    assert "humanoid" not in done.stdout.split()


def test_every_option_of_every_command_is_offered(capsys):
    text = script("bash", capsys)
    for c in completion.commands_of(cli._parser(), {}):
        for option in c.options:
            assert option in text


def test_unknown_shells_are_refused(capsys):
    assert cli.main(["completion", "tcsh"]) == 2
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err
