"""od.script: problems as commands; what they share, with a small problem of its own."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

import oc_dyn as od


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
        axis.plot([0, 1])


main = od.script(solve, Config(), quick={"size": 2})


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
    assert facts["checks"] == {"size over limit": {"error": 3.0, "bound": 10.0}}
    assert facts["command"].startswith("python problems/test_script.py")
    assert "is below" in capsys.readouterr().out


def test_settings_from_the_command_and_from_python(tmp_path, capsys):
    assert main(["--quick", "--quiet", "--set", "limit=4.0", "--out", tmp_path], nodes=(7,)) == 0
    assert capsys.readouterr().out == ""
    config = json.loads((tmp_path / "manifest.json").read_text())["config"]
    assert config == {"size": 2, "limit": 4.0, "nodes": [7]}
    assert main(["--set=size=30", "--out", tmp_path]) == 1
    assert "IS NOT below" in capsys.readouterr().out
    assert json.loads((tmp_path / "manifest.json").read_text())["passed"] is False


@pytest.mark.parametrize(
    ("words", "said"),
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


def test_a_folder_that_cannot_be(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["--out", tmp_path / "file" / "x"]) == 2
    assert "Not a directory" in capsys.readouterr().err


def test_a_table_whose_columns_do_not_fit(tmp_path):
    run = od.runs.script.Run(tmp_path, True, print)
    for columns in ({("a", "b"): [1, 2]}, {"a": [1, 2], "b": [1]}):
        with pytest.raises(od.ShapeError, match="table x.csv"):
            run.table("x.csv", columns)
    assert not list(tmp_path.iterdir())
