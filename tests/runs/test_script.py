"""od.script: problems as commands; what they share, with a small problem of its own."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from clones import clone

import oc_dyn as od
from oc_dyn import drawing


@dataclass(frozen=True)
class Config:
    size: int = 3
    limit: float = 1.0
    nodes: tuple = (1, 2)


def solve(run, cfg):
    if cfg.limit < 0:
        raise od.LimitError(f"limit is {cfg.limit}")
    run.check("size over limit", cfg.size * cfg.limit, below=10)
    run.facts["seen"] = np.arange(cfg.size)
    run.table("numbers.csv", {"t [s]": np.arange(2), ("a", "b"): np.ones((2, 2)), "of": ["x", "y, z"]})
    with run.figure("two.png", "left", "right") as (left, right):
        left.plot([0, 1], label="line")
        right.plot([1, 0])
    with run.figure("three.png", "a", "b", "c", columns=2) as axes:
        assert len(axes) == 3
    with run.figure("one.png", "alone") as axis:
        (line,) = axis.plot([0, 1])
        assert line.get_color() == drawing.COLORS[0]


main = od.script(solve, Config(), quick={"size": 2})


@pytest.mark.slow
def test_files_manifest_and_status(tmp_path, capsys):
    assert main(["--out", tmp_path / "a"]) == 0
    assert {p.name for p in (tmp_path / "a").iterdir()} == {
        *("numbers.csv", "two.png", "three.png", "one.png", "manifest.json"),
    }
    assert (tmp_path / "a" / "numbers.csv").read_text() == "t [s],a,b,of\n0,1,1,x\n1,1,1,\"y, z\"\n"
    facts = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert facts["passed"]
    assert facts["seen"] == [0, 1, 2]
    assert facts["config"]["nodes"] == [1, 2]
    assert facts["checks"] == {"size over limit": {"value": 3.0, "below": 10.0, "passed": True}}
    assert facts["command"].startswith("python problems/test_script.py")
    assert "is below" in capsys.readouterr().out


@pytest.mark.slow
def test_settings_from_the_command_and_from_python(tmp_path, capsys):
    assert main(["--quick", "--quiet", "--set", "limit=4.0", "--out", tmp_path], nodes=(7,)) == 0
    assert capsys.readouterr().out == ""
    config = json.loads((tmp_path / "manifest.json").read_text())["config"]
    assert config == {"size": 2, "limit": 4.0, "nodes": [7]}
    assert main(["--set=size=30", "--out", tmp_path]) == 1
    assert "IS NOT below" in capsys.readouterr().out
    assert json.loads((tmp_path / "manifest.json").read_text())["passed"] is False


@pytest.mark.parametrize(
    "words, said",
    [
        (["--set", "limit=-1"], "limit is -1"),
        (["--set", "limits=1"], "limits"),
        (["--set", "limit=fast"], "expected limit=VALUE"),
        (["--set", "nodes=3"], "nodes is (1, 2); got 3"),
        (["--set", "nodes=(3,)"], "nodes has 2 values, (1, 2); got 1"),
    ],
)
def test_what_is_refused_is_told_and_nothing_is_written(words, said, tmp_path, capsys):
    assert main([*words, "--out", tmp_path]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "manifest.json").exists()


@pytest.mark.slow
def test_a_quick_run_and_a_full_one_write_to_their_own_folders(tmp_path):
    with clone(tmp_path / "clone") as quick:
        assert main(["--quick", "--quiet"]) == 0
    assert (quick / "test_script" / "manifest.json").exists()
    with pytest.raises(AssertionError, match="results/test_script/manifest.json"), clone(tmp_path / "other") as quick:
        assert main(["--quiet"]) == 0
    assert not quick.exists()


PASSING = [  # value, bounds, end of the line
    (1, {"below": 2}, "1.000e+00  is below 2.000e+00"),
    (1, {"above": 0}, "1.000e+00  is above 0.000e+00"),
    (1, {"below": 2, "above": 0}, "1.000e+00  is below 2.000e+00 and above 0.000e+00"),
    (3, {"equals": 3}, "3.000e+00  equals 3"),
    (3.1, {"equals": 3, "within": 0.2}, "3.100e+00  equals 3 within 2.000e-01"),
    (None, {"holds": True}, "  holds"),
    (0.5, {"holds": np.bool_(True)}, "5.000e-01  holds"),
]
FAILING = [
    (2, {"below": 2}, "2.000e+00  IS NOT below 2.000e+00"),
    (0, {"above": 0}, "0.000e+00  IS NOT above 0.000e+00"),
    (3, {"below": 2, "above": 0}, "3.000e+00  IS NOT below 2.000e+00 and above 0.000e+00"),
    (-1, {"below": 2, "above": 0}, "-1.000e+00  IS NOT below 2.000e+00 and above 0.000e+00"),
    (4, {"equals": 3}, "4.000e+00  DOES NOT EQUAL 3"),
    (3.5, {"equals": 3, "within": 0.2}, "3.500e+00  DOES NOT EQUAL 3 within 2.000e-01"),
    (2.5, {"equals": 3, "within": 0.2}, "2.500e+00  DOES NOT EQUAL 3 within 2.000e-01"),
    (None, {"holds": False}, "  DOES NOT HOLD"),
    *((np.nan, bounds, "") for bounds in ({"below": 2}, {"above": 0}, {"equals": 3}, {"equals": 3, "within": 0.2})),
]


@pytest.mark.parametrize(
    "value, bounds, end, passes", [(*x, True) for x in PASSING] + [(*x, False) for x in FAILING]
)
def test_a_check_prints_value_and_bound(value, bounds, end, passes, tmp_path, capsys):
    run = od.runs.script.ProblemRun(tmp_path, True, print)
    assert run.check("what", value, **bounds) is passes
    line = capsys.readouterr().out
    assert line.startswith("what ")
    assert line.endswith(f"{end}\n")
    assert run.checks["what"]["passed"] is passes


@pytest.mark.parametrize(
    "value, bounds, said",
    [
        (1, {}, "got no bound"),
        (1, {"within": 1}, "got within, expected below and/or above"),
        (1, {"below": 1, "equals": 1}, "got below and equals"),
        (1, {"below": 1, "holds": True}, "got below and holds"),
        (None, {"below": 1}, "value is None, expected a number"),
        ([1, 2], {"below": 1}, "value is .1, 2., expected a number"),
        (1, {"below": "high"}, "below is 'high', expected a number"),
        (None, {"holds": np.ones(2)}, "holds is array"),
    ],
)
def test_a_check_that_cannot_be(value, bounds, said, tmp_path):
    run = od.runs.script.ProblemRun(tmp_path, True, print)
    with pytest.raises(od.ShapeError, match=said):
        run.check("what", value, **bounds)
    assert not run.checks


def test_two_checks_of_one_name(tmp_path):
    run = od.runs.script.ProblemRun(tmp_path, True, print)
    run.check("what", 1, below=2)
    with pytest.raises(od.ShapeError, match="there is one of that name"):
        run.check("what", 1, below=2)


def test_a_folder_that_cannot_be(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["--out", tmp_path / "file" / "x"]) == 2
    assert "Not a directory" in capsys.readouterr().err


def test_a_table_whose_columns_do_not_fit(tmp_path):
    run = od.runs.script.ProblemRun(tmp_path, True, print)
    for columns in ({("a", "b"): [1, 2]}, {"a": [1, 2], "b": [1]}):
        with pytest.raises(od.ShapeError, match="table x.csv"):
            run.table("x.csv", columns)
    assert not list(tmp_path.iterdir())
