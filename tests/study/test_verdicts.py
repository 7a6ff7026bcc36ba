"""Pages of results say what the tables beside them say: every figure that is marked, and none without a mark."""

import re
from pathlib import Path

import casadi as ca
import pytest
import stated_figures as page

import oc_dyn as od

RESULTS = Path(__file__).resolve().parents[2] / "results"
PAGES = "VERDICT.md", "README.md"


def read(name):
    return page.split((RESULTS / name).read_text(encoding="utf-8"))


def wrong(body, notes, results=RESULTS):
    """What a page says that its tables do not: [(Stated, numbers)]."""
    found = {mark: page.values(note, results) for mark, note in notes.items() if page.is_rule(note)}
    return [
        (figure, found[figure.mark])
        for figure in page.stated(body)
        if figure.mark in found and not page.agrees(figure, found[figure.mark])
    ]


@pytest.mark.parametrize("name", PAGES)
def test_figures_are_those_of_the_tables(name):
    body, notes = read(name)
    assert len(page.stated(body)) > 20
    assert wrong(body, notes) == []


@pytest.mark.parametrize("name", PAGES)
def test_every_figure_has_a_note_and_every_note_a_figure(name):
    body, notes = read(name)
    assert page.unmarked(body) == []
    marks = set(re.findall(r"\[\^([\w-]+)\]", body))
    assert marks == set(notes)
    assert marks == {figure.mark for figure in page.stated(body)}, "a mark stands behind no figure"


@pytest.mark.parametrize("name", PAGES)
def test_another_figure_in_the_text_is_noticed(name):
    """Each figure in turn, changed in its last digit."""
    body, notes = read(name)
    found = {mark: page.values(note) for mark, note in notes.items() if page.is_rule(note)}
    for figure in page.stated(body):
        if figure.mark in found and not figure.below:
            for place, text in enumerate(figure.figures):
                head, _, tail = text.partition("e")
                digit = str((int(head[-1]) + 5) % 10 or 1)
                changed = head[:-1] + digit + ("e" + tail if tail else "")
                others = (*figure.figures[:place], changed, *figure.figures[place + 1 :])
                if changed != text:
                    assert not page.agrees(page.Stated(figure.mark, others, figure.between, figure.percent, False),
                                           found[figure.mark]), (figure, changed)  # fmt: skip


@pytest.mark.parametrize("name", PAGES)
def test_another_number_in_a_table_is_noticed(name, monkeypatch):
    """The rows of each note in turn, their column changed."""
    body, notes = read(name)
    figures = {}
    for figure in page.stated(body):
        figures.setdefault(figure.mark, []).append(figure)
    kept = page.table
    for mark, note in notes.items():
        if page.is_rule(note):
            factor = 20 if any(figure.below for figure in figures[mark]) else 1.8
            monkeypatch.setattr(page, "table", lambda path, note=note, f=factor: _changed(kept(path), note, f))
            found = page.values(note)
            assert not any(page.agrees(figure, found) for figure in figures[mark]), note


def _changed(rows, note, factor):
    """Rows of a table, those that a note takes with another number."""
    rule = page.parts(note)
    taken = [k for k, row in enumerate(rows) if page.matches(row, rule["rows"])]
    if rule["take"] == "number":  # of rows: one of them stands twice
        return [*rows, rows[taken[0]]]
    other = {k: {**rows[k], rule["column"]: str(factor * page.number(rows[k][rule["column"]]))} for k in taken}
    return [other.get(k, row) for k, row in enumerate(rows)]


@pytest.mark.parametrize("m", ["recursive_body", "recursive_body_leibniz"])
def test_no_instruction_of_a_recursion_has_a_zero_operand(m):
    """What the pages say of the zeros in its products: CasADi has folded them."""
    f = od.function(od.robots.panda(), "inverse_dynamics", order=1, method=m)
    constants, worked = {}, 0
    for k in range(f.n_instructions()):
        what, out = f.instruction_id(k), f.instruction_output(k)
        if what == ca.OP_CONST:
            constants[out[0]] = f.instruction_constant(k)
        elif what not in (ca.OP_INPUT, ca.OP_OUTPUT):
            worked += 1
            assert all(constants.get(x) != 0 for x in f.instruction_input(k)), k
            constants.pop(out[0], None)
    assert worked > 1000


# -- the reader --------------------------------------------------------------------------------------------------


@pytest.fixture
def tables(tmp_path):
    rows = ("robot,method,order,instructions", "a,x,1,10", "a,y,1,40", "b,x,1,30", "b,y,1,60", "b,y,2,90")
    (tmp_path / "t.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "m.json").write_text('{"rows": [{"of": {"x": 0.25}, "name": "p"}], "checks": {"a, b: c [m]": 2e-9}}')
    rows = ("line,median [s],share,off", '"a, b, N = 5",0.2,40%,', '"a, N = 5",0.1,2.5%,3', "c,0.4,10%,7")
    (tmp_path / "u.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


@pytest.mark.parametrize(
    "note, numbers",
    [
        ("t.csv, instructions of robot=a, method=x", [10]),
        ("t.csv, instructions of order=1, method=x / method=y by robot", [0.25, 0.5]),
        ("t.csv, instructions of robot=b, method=y, order=2 / order=1", [1.5]),
        ("t.csv, largest instructions of robot=a|b, order<=1", [60]),
        ("t.csv, number of method=y", [3]),
        ("m.json#rows, of.x of name=p", [0.25]),
        ("m.json, 1e9 x checks.a, b: c [m] of rows.0.name=p", [2]),
        ("t.csv, median instructions of order=1", [35]),
        ("t.csv, median instructions of method=x / method=y, order=1 by robot", [0.375]),
        ("u.csv, median [s] of line=a, b, N = 5|c", [0.2, 0.4]),
        ("u.csv, 1000 x median [s] of line=a, N = 5, off=3", [100]),
        ("u.csv, median [s] of line=a, N = 5 / line=a, b, N = 5", [0.5]),
        ("u.csv, share of off=", [0.4]),
        ("u.csv, smallest share of off!=", [0.025]),
        ("u.csv, off of off<=5", [3]),
    ],
)
def test_rules(tables, note, numbers):
    assert page.values(note, tables) == numbers


@pytest.mark.parametrize(
    "note, told",
    [
        ("t.csv, instructions of robot=c", "no row"),
        ("t.csv, instructions of robots=a", "no column robots"),
        ("t.csv, count of robot=a", "no count"),
        ("t.csv, instructions of method=x / method=y", "3 rows to divide by"),
        ("t.csv, instructions with robot=a", "not understood"),
    ],
)
def test_rules_that_match_nothing_are_told(tables, note, told):
    with pytest.raises(AssertionError, match=told):
        page.values(note, tables)


@pytest.mark.parametrize(
    "text, numbers, agree",
    [
        ("0.25[^a]", [0.2549], True),
        ("0.25[^a]", [0.2551], False),
        ("takes 0.2 to 0.5[^a]", [0.5, 0.3, 0.2], True),
        ("takes 0.2 to 0.5[^a]", [0.5, 0.1], False),
        ("0.1, 0.2 and 0.3[^a]", [0.1, 0.2, 0.3], True),
        ("0.1, 0.2 and 0.3[^a]", [0.2, 0.1, 0.3], False),
        ("less than 0.1 %[^a]", [0.0009], True),
        ("less than 0.1 %[^a]", [0.0011], False),
        ("less than 0.1 %[^a]", [0.00001], False),
        ("2e-4[^a]", [1.92e-4], True),
        ("2e-4[^a]", [1.4e-4], False),
        ("120 938[^a]", [120938], True),
    ],
)
def test_agreement(text, numbers, agree):
    (figure,) = page.stated(text)
    assert page.agrees(figure, numbers) == agree


def test_figures_without_a_mark_are_found():
    assert page.unmarked("0.5[^a] of 3 bodies, 0.7 and 1 200 of `0.3`, with 4.1.0 1e-9.") == ["0.7", "1 200", "1e-9"]
