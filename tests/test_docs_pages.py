"""Pages on papers say where equations are in the code; pages on other programs and tutorials run."""

import ast
import csv
import importlib
import re
import shutil
import sys
import tokenize
from pathlib import Path

import matplotlib as mpl
import pytest

from oc_dyn import registry

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
THEORY = sorted(path.name for path in (DOCS / "theory").glob("*.md"))
TUTORIALS = sorted(path.name for path in (DOCS / "tutorials").glob("*.md"))
PEERS = {  # page: (title of their blocks, module that has to be there for them)
    "acados": ("acados", "acados_template"),
    "adam": ("adam", "adam"),
    "casadi": ("CasADi", "casadi"),
    "drake": ("Drake", "pydrake"),
    "dymos": ("dymos", "dymos"),
    "mujoco": ("MuJoCo", "mujoco"),
    "pinocchio": ("Pinocchio", "pinocchio"),
    "rockit": ("rockit", "rockit"),
    "ruckig": ("Ruckig", "ruckig"),
    "toppra": ("toppra", "toppra"),
}


def test_docstrings_flow_where_they_are_not_laid_out():
    pytest.importorskip("griffe")
    from verbatim import flowing

    text = "What it\ndoes.\n\nArgs:\n    a (n,): long\n        line.\n    b, c: short\nRaises E, and\nF.\n\nA  B\nC  D"
    wanted = "What it does.\n\nArgs:\n    a (n,): long line.\n    b, c: short\nRaises E, and F.\n\nA  B\nC  D"
    assert flowing(text) == wanted


# -- where equations are ----------------------------------------------------------------------------------------------


def places(page):
    """[(equations, file, name)] of the table of a page on a paper."""
    text = (DOCS / "theory" / page).read_text(encoding="utf-8")
    return re.findall(r"^\| ([^|]+) \| [^|]+ \| `(oc_dyn/[^`]+)` \| `(\w+)` \|$", text, re.MULTILINE)


def defined(path):
    """Names of functions and classes of a module."""
    kinds = ast.FunctionDef, ast.ClassDef
    return {x.name for x in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(x, kinds)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("page", [x for x in THEORY if x != "notation.md"])
def test_equations_are_where_the_page_says(page):
    rows, wrong = places(page), []
    assert len(rows) >= 6
    for equations, file, name in rows:
        path = ROOT / file
        if not path.is_file() or name not in defined(path):
            wrong.append(f"{file}: no {name}")
            continue
        numbers, said = re.findall(r"\d+[a-d]?", equations), words(path)
        wrong += [f"{file}: no equation {n}" for n in numbers if not re.search(rf"(?<![\w.]){n}(?![\d])", said)]
    assert wrong == []


def words(path):
    """Comments and texts of a module, where equations are named: code has numbers of its own."""
    with open(path, "rb") as file:
        tokens = [t.string for t in tokenize.tokenize(file.readline) if t.type in (tokenize.COMMENT, tokenize.STRING)]
    return _spelled("\n".join(tokens))


def _spelled(text):
    """A text with ranges such as 21 to 47 and 16 to 18 written out."""

    def out(match):
        return ", ".join(str(k) for k in range(int(match.group(1)), int(match.group(2)) + 1))

    return re.sub(r"\b(\d+)\)? to \(?(\d+)\b", out, text)


def test_equations_that_are_not_there_are_noticed():
    text = "derivatives (30) and eqs. 21 to 23"
    assert all(re.search(rf"(?<![\w.]){n}(?![\d])", _spelled(text)) for n in (21, 22, 23, 30))
    assert not any(re.search(rf"(?<![\w.]){n}(?![\d])", _spelled(text)) for n in (2, 3, 24, 300))


def test_figures_of_the_page_on_performance_are_those_of_the_results():
    """Counts to the last digit, times, which are measured now and then, to 20 %."""
    text = (DOCS / "performance.md").read_text(encoding="utf-8")

    def cell(file, column, **which):
        with open(ROOT / "results" / file, newline="", encoding="utf-8") as rows:
            (found,) = [r[column] for r in csv.DictReader(rows) if all(r[k] == v for k, v in which.items())]
        return found

    panda = {"robot": "panda", "quantity": "inverse_dynamics"}
    for order in "0 2 5 12".split():
        row = next(x for x in text.splitlines() if x.startswith(f"| {order} | "))
        for method in ("taylor", "ad_jet_cse", "ad_jet"):
            count = cell("growth/growth.csv", "instructions", method=method, order=order, **panda)
            assert (count or "above 150000") in row
    times = row_of(text, "| inverse dynamics | 0.")
    for k, column in enumerate(("bare [us]", "packed [us]", "numpy_call [us]", "Pinocchio [us]")):
        assert times[k] == pytest.approx(float(cell("calls/binding.csv", column, **panda)), rel=0.2)
    times = row_of(text, "| inverse dynamics of order 2 |")
    for k, column in enumerate(("scalar [ns]", "vectors [ns]")):
        assert times[k] == pytest.approx(float(cell("batch_peers/batch.csv", column, order="2", **panda)), rel=0.2)
    plan = {"problem": "panda torque rate", "solver": "ipopt", "hessian": "exact"}
    for what, which in (("AD", {"derivatives": "ad"}), ("analytic, compiled", {"compiled": "yes"})):
        times = row_of(text, f"| stages, {what} |")
        for k, column in enumerate(("build and solve over Opti with AD", "again over Opti with AD")):
            assert times[k] == pytest.approx(float(cell("solvers/solvers.csv", column, **plan, **which)), rel=0.2)
    step = {"N": "10", "solver": "oc_dyn, riccati", "iterations at most": "1"}
    times = row_of(text, "| one iteration |")
    for k, column in enumerate(("median [ms]", "99 % [ms]")):
        assert times[k] == pytest.approx(float(cell("mpc/steps.csv", column, **step)), rel=0.2)


def row_of(text, begins):
    """Numbers of the row of a table that begins like this."""
    (row,) = [x for x in text.splitlines() if x.startswith(begins)]
    cells = [x.strip() for x in row.split("|")[2:-1]]
    return [float(x) for x in cells if x]


# -- pages that run ---------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run_blocks of the site, in a folder of its own, with a registry of its own."""
    monkeypatch.syspath_prepend(str(DOCS / "site"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    importlib.import_module("oc_dyn.elastic")  # or its methods would go with the copy when they come while a page runs
    monkeypatch.setattr(registry, "_METHODS", {q: dict(found) for q, found in registry._METHODS.items()})
    mpl.use("Agg")
    yield importlib.import_module("executed").run_blocks
    sys.modules.pop("executed", None)


def blocks(text):
    return len(re.findall(r"^```python\b", text, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize("page", THEORY)
def test_examples_of_theory_run(page, run):
    text = (DOCS / "theory" / page).read_text(encoding="utf-8")
    count, _ = run(text, page)
    assert count == blocks(text) == (page != "notation.md")


@pytest.mark.few(2)
@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS)
def test_tutorials_run(page, run, capsys):
    if page == "mpc-to-c.md" and not any(map(shutil.which, ("cc", "gcc", "clang"))):
        pytest.skip("no compiler")
    text = (DOCS / "tutorials" / page).read_text(encoding="utf-8")
    pictures = []
    count, _ = run(text, page, each=lambda *_: pictures.extend(Path().glob("*.png")))
    assert count == blocks(text)
    assert capsys.readouterr().out
    assert bool(pictures) == (page != "own-method.md")


@pytest.mark.slow
def test_a_method_of_the_tutorial_is_listed(run):
    run((DOCS / "tutorials" / "own-method.md").read_text(encoding="utf-8"), "own-method.md")
    assert "unit_accelerations" in registry.methods("mass_matrix")
    assert "unit_accelerations" in registry.table()


def test_all_pages_on_other_programs_are_run():
    assert sorted(path.stem for path in (DOCS / "coming-from").glob("*.md")) == sorted(PEERS)


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(PEERS))
def test_both_sides_of_pages_on_other_programs_run(page, run):
    title, module = PEERS[page]
    text = (DOCS / "coming-from" / f"{page}.md").read_text(encoding="utf-8")
    there = importlib.util.find_spec(module) is not None
    assert set(re.findall(r'^```python title="([^"]*)"', text, re.MULTILINE)) <= {title, "oc_dyn", "both"}
    count, _ = run(text, f"{page}.md", only=lambda x: there or x in (None, "oc_dyn"))
    assert count >= 1
    if not there:
        pytest.skip(f"{module} is not installed: {count} blocks of this side alone ran")
    assert count == blocks(text)


def test_every_formula_is_drawn(monkeypatch):
    pytest.importorskip("latex2mathml")
    monkeypatch.syspath_prepend(str(DOCS / "site"))
    mathml, count = importlib.import_module("formulas").mathml, 0
    for path in DOCS.rglob("*.md"):
        for formula in re.findall(r"^```math\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            drawn, count = mathml(formula), count + 1
            rows = len([x for x in formula.split("\\\\") if x.strip()]) if "aligned" in formula else 1
            assert drawn.count("<mtr>") - formula.count("pmatrix") // 2 * 2 == rows, formula
            assert "\\" not in drawn, formula
            assert "merror" not in drawn, formula
    assert count >= 10
    assert mathml(r"\begin{aligned} a &= b'' \\ c &= d \end{aligned}").count("&#x02032;") == 2


@pytest.mark.slow
def test_a_page_with_a_block_that_fails_is_no_page(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "site"))
    site = importlib.import_module("executed")
    monkeypatch.setattr(site, "ROOT", tmp_path)  # where pages are kept
    page = tmp_path / "page.md"
    page.write_text('# A\n\n```python\nprint(6 * 7)\n```\n\n```python title="a.py"\nx = 1\n```\n', encoding="utf-8")
    text, pictures = site.executed(page)
    assert '```text title="output"\n42\n```' in text
    assert pictures == []
    page.write_text("```python\nprint(unknown)\n```\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="NameError: name 'unknown'"):
        site.executed(page)
    sys.modules.pop("executed")
