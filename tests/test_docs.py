"""Examples of the pages under docs/ run, and their links lead somewhere."""

import re
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"


def run_examples(page):
    """(how many blocks of code a page has, the names that they leave), run one after the other."""
    text, names = (DOCS / page).read_text(encoding="utf-8"), {"__name__": "docs"}
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for block in blocks:
        line = text[: text.index(block)].count("\n")
        exec(compile("\n" * line + block, page, "exec"), names)  # so that a failure names the line
    return len(blocks), names


def test_examples_of_optimal_control_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    count, names = run_examples("optimal-control.md")
    assert count >= 7
    assert names["found"].success
    assert Path("swing_up.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert len(Path("swing_up.csv").read_text().splitlines()) == 202


@pytest.mark.slow
def test_example_of_certificate_runs():
    block = re.search(r"^```python\n(.*?)^```$", (DOCS / "certificate.md").read_text(encoding="utf-8"), re.M | re.S)
    names = {"__name__": "docs"}
    exec(compile(block.group(1), "certificate.md", "exec"), names)
    clearance = names["report"].clearance
    assert 0.02 <= clearance.certified <= clearance.met <= clearance.certified + 1.01e-5


@pytest.mark.slow
def test_examples_of_obstacles_run():
    count, names = run_examples("obstacles.md")
    assert count == 3
    assert names["command"][0] > 0.5


@pytest.mark.parametrize("page", sorted(str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)#]+)\)", text):
        assert link.startswith("https://") or ((DOCS / page).parent / link).exists(), link


@pytest.mark.slow
def test_examples_of_control_run():
    count, names = run_examples("control.md")
    assert count == 3
    assert names["found"]["status"] == 0


@pytest.mark.slow
def test_examples_of_the_laboratory_run():
    count, names = run_examples("elastic-laboratory.md")
    assert count == 3
    assert names["run"].largest_error < 0.1
    assert len(names["table"].rows) == 3


@pytest.mark.slow
def test_examples_of_loops_run():
    count, names = run_examples("loops.md")
    assert count == 8
    assert names["press"].independent == ("motor",)
    assert names["dv"].shape == (names["robot"].nv, 1)


@pytest.mark.slow
def test_examples_of_elastic_plans_run():
    count, names = run_examples("elastic-plans.md")
    assert count == 5
    assert names["plan"].check().ok()
    assert max(names["driven"].shares().values()) > 0.99
    assert names["throw"].objective > 3.0
    assert names["gait"].periodic


@pytest.mark.slow
def test_examples_of_time_derivatives_run():
    count, names = run_examples("time-derivatives.md")
    assert count == 3
    assert [float(names["found"][f"d{k}a"]) for k in (2, 3)] == pytest.approx([-9.81 * np.sin(1), 0])
    t = ca.SX.sym("t", 2)
    dae = {"x": t, "ode": ca.vertcat(t[1], -9.81 * ca.sin(t[0]))}
    end = ca.integrator("end", "cvodes", dae, 0, 0.1, {"abstol": 1e-13, "reltol": 1e-13})(x0=[1, 0])["xf"]
    assert names["after"] == pytest.approx(float(end[0]), abs=1e-10)


ELSEWHERE = (  # with what they show
    "certificate.md control.md elastic-plans.md loops.md obstacles.md optimal-control.md time-derivatives.md tour.md"
).split()
OTHERS = sorted(path.name for path in DOCS.glob("*.md") if path.name not in ELSEWHERE)


@pytest.mark.slow
@pytest.mark.parametrize("page", OTHERS)
def test_examples_of_other_pages_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    count, _ = run_examples(page)
    assert count == (DOCS / page).read_text(encoding="utf-8").count("```python\n")
