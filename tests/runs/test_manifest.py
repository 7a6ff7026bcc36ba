"""What a manifest says, and above all what it must not say."""

import getpass
import json
import os
import platform
import re
import subprocess
from datetime import datetime, timezone
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.runs.manifest import git_state, machine, manifest, write_json


def test_says_what_made_the_result():
    before = datetime.now(timezone.utc).replace(microsecond=0)
    facts = manifest(["oc-dyn", "demo", "--nodes=20"], duration=np.float64(1.5), shares=np.array([0.5, 1.0]))
    assert facts["command"] == "oc-dyn demo --nodes=20"
    assert facts["versions"] == {
        "oc_dyn": od.__version__,
        "casadi": ca.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    assert facts["machine"]["architecture"] == platform.machine()
    assert facts["machine"]["cores"] >= 1
    assert (facts["duration"], facts["shares"]) == (1.5, [0.5, 1.0])
    date = datetime.fromisoformat(facts["date"])
    assert date.utcoffset().total_seconds() == 0
    assert before <= date <= datetime.now(timezone.utc)


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="no /proc/cpuinfo")
def test_cpu_model_is_the_one_of_proc():
    text = Path("/proc/cpuinfo").read_text()
    model = machine()["cpu"]
    assert (model in text) if model else ("model name" not in text)


def test_names_no_person_no_computer_and_no_folder(tmp_path):
    inside = Path.cwd() / "some where" / "a.json"
    facts = manifest(
        ["oc-dyn", "plan", str(tmp_path / "arm.urdf"), f"--out={inside}", "--limits", str(tmp_path / "my limits.json")],
        note=f"read from {tmp_path}/x.csv, in rad/s",
        file=tmp_path / "sub" / "b c.csv",
        nested={"list": [str(tmp_path / "d.npz")]},
    )
    text = json.dumps(facts)
    assert facts["command"] == "oc-dyn plan arm.urdf '--out=some where/a.json' --limits 'my limits.json'"
    assert facts["note"] == "read from x.csv, in rad/s"
    assert facts["file"] == "b c.csv"
    assert facts["nested"] == {"list": ["d.npz"]}
    words = set(re.findall(r"[\w.-]+", text))
    for secret in (platform.node(), getpass.getuser()):
        assert secret not in words
    for folder in (Path.home(), tmp_path, Path.cwd()):
        assert str(folder) + os.sep not in text


@pytest.mark.parametrize(
    "text", ["rad/s and Nm/s", "https://example.org/a/b", "results/demo", "a / b", "1/2", "~5 Nm", "../up/x.csv"]
)
def test_leaves_what_is_no_absolute_path(text):
    assert manifest(text)["command"] == text


def test_git_state_tells_commit_and_changes(tmp_path):
    def git(*words):
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", str(tmp_path), *who, *words], check=True, capture_output=True)

    code, results = tmp_path / "code", tmp_path / "results"
    code.mkdir()
    results.mkdir()
    (code / "a.py").write_text("1\n")
    (results / "a.csv").write_text("1\n")
    assert git_state(code) is None  # no repository
    git("init", "-q")
    assert git_state(code) is None  # nothing committed
    git("add", ".")
    assert git_state(code) is None
    git("commit", "-q", "-m", "m")
    clean = git_state(code)
    assert re.fullmatch("[0-9a-f]{40}", clean["commit"])
    assert clean["dirty"] is False
    (results / "a.csv").write_text("2\n")
    assert git_state(code) == clean
    (code / "a.py").write_text("2\n")
    assert git_state(code) == {**clean, "dirty": True}
    (tmp_path / "untracked").mkdir()
    assert git_state(tmp_path / "untracked") is None  # a folder inside that git does not track


def test_write_json_is_whole_or_not_at_all(tmp_path):
    path = tmp_path / "m.json"
    data = {"a": np.arange(3), "b": ca.DM([1.0, 2.0]), "c": float("inf"), "d": {1: (True, None)}, "e": "\u00fc"}
    write_json(path, data)
    text = path.read_text(encoding="utf-8")
    assert text.endswith("}\n")
    assert json.loads(text) == {"a": [0, 1, 2], "b": [[1.0], [2.0]], "c": None, "d": {"1": [True, None]}, "e": "\u00fc"}

    class Broken:
        def __str__(self):
            raise RuntimeError("no text")

    with pytest.raises(RuntimeError):
        write_json(path, {"a": Broken()})
    assert path.read_text(encoding="utf-8") == text
    assert [p.name for p in tmp_path.iterdir()] == ["m.json"]


def test_write_json_replaces_and_gives_usual_rights(tmp_path):
    path, plain = tmp_path / "m.json", tmp_path / "plain"
    plain.write_text("")
    write_json(path, {"a": 1})
    write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 2}
    assert path.stat().st_mode == plain.stat().st_mode
    write_json(tmp_path / "new" / "m.json", {})  # the folder is made
    assert (tmp_path / "new" / "m.json").read_text() == "{}\n"
