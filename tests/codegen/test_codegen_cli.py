"""oc-dyn codegen: what it writes and prints, and one line for every mistake."""

import pytest
from test_codegen_files import needs_compiler

from oc_dyn import cli


def run(capsys, *words):
    status = cli.main(["codegen", *map(str, words)])
    return status, *capsys.readouterr()


@pytest.mark.slow
@needs_compiler
def test_codegen_of_several_quantities(capsys, tmp_path):
    words = ["panda", "--quantity", "inverse_dynamics", "--order", "1", "--method", "recursive_body"]
    words += ["--quantity", "frame_pose", "--option", "frame=panda_link8", "--compile-test"]
    status, out, err = run(capsys, *words, "--out", tmp_path / "arm")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("inverse_dynamics_1: ")
    assert lines[1].startswith("frame_pose_0: ")
    assert lines[2].endswith(
        "arm: arm.c, arm.h, arm.hpp, arm_example.c, arm_selftest.c, arm_targets.cmake, CMakeLists.txt"
    )
    assert lines[3].startswith("arm_inverse_dynamics_1: largest error")
    assert lines[-1] == "all 2 passed"
    header = (tmp_path / "arm" / "arm.h").read_text()
    assert "dtau (7, 1)" in header
    assert "double" in header


@pytest.mark.slow
@needs_compiler
def test_floating_single_separate_and_quiet(capsys, tmp_path):
    words = ["panda", "--floating", "--lock", "panda_joint1=0.1", "--single", "--separate", "--name", "robo", "--quiet"]
    words += ["--quantity", "inverse_dynamics", "--quantity", "inverse_dynamics", "--method", "recursive_body"]
    assert run(capsys, *words, "--out", tmp_path / "x", "--compile-test") == (0, "", "")
    names = {p.name for p in (tmp_path / "x").glob("*.c")} - {"robo_example.c", "robo_selftest.c"}
    assert names == {"robo_inverse_dynamics_0_default.c", "robo_inverse_dynamics_0_recursive_body.c"}
    header = (tmp_path / "x" / "robo.h").read_text()
    assert "float" in header
    assert "q (13, 1)" in header


@pytest.mark.parametrize(
    "words, hint",
    [
        (["panda"], "--quantity"),
        (["panda", "--quantity", "inverse_dynamic"], "did you mean 'inverse_dynamics'"),
        (["panda", "--order", "1", "--quantity", "com"], "must follow the --quantity it belongs to"),
        (["panda", "--quantity", "com", "--order", "two"], "invalid whole number"),
        (["panda", "--quantity", "com", "--order", "-1"], "at least 0"),
        (["panda", "--quantity", "com", "--order", "1", "--order", "2"], "given twice for com"),
        (["panda", "--quantity", "com", "--option", "frame"], "NAME=VALUE"),
        (["panda", "--quantity", "com", "--method", "best"], "no method of 'com' 'best'"),
        (["panda", "--quantity", "com", "--name", "my-arm"], "cannot start names in C"),
        (["pandas", "--quantity", "com"], "did you mean 'panda'"),
    ],
)
def test_mistakes_get_one_line(words, hint, capsys, tmp_path):
    status, out, err = run(capsys, *words, "--out", tmp_path / "code")
    assert status == 2
    assert err.count("\n") == 1
    assert hint in err
    assert not (tmp_path / "code").exists()


def test_no_compiler_for_the_test(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    status, out, err = run(capsys, "panda", "--quantity", "com", "--out", tmp_path / "code", "--compile-test")
    assert status == 2
    assert "looked for $CC (not set), cc, gcc, clang" in err
    assert not (tmp_path / "code").exists()
