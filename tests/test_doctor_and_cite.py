"""oc-dyn doctor tells what is there, od.cite what to cite."""

import json
import re
from pathlib import Path

import casadi as ca
import pytest

import oc_dyn as od
from oc_dyn import cli, doctor
from oc_dyn.citations import _WORKS


def test_doctor_tells_versions_solvers_and_caches(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("OC_DYN_CACHE", str(tmp_path))
    (tmp_path / "x.so").write_bytes(b"0" * 2_000_000)
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert re.search(rf"casadi\s+ok\s+{re.escape(ca.__version__)}", text)
    assert re.search(r"ipopt\s+ok\s+in CasADi", text)
    assert "1 files, 2.0 MB" in text
    assert text.rstrip().endswith("all that is needed is there")


def test_doctor_for_machines(capsys):
    assert cli.main(["doctor", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["oc_dyn"]["told"] == od.__version__
    assert {"ipopt", "C", "compiled code", "trimesh"} <= set(rows)


def test_missing_parts_are_told(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "_version", lambda name: None if name in ("numpy", "ompl") else "1.0")
    monkeypatch.setenv("CC", "")
    monkeypatch.setenv("PATH", "")
    assert cli.main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert re.search(r"numpy\s+MISSING", text)
    assert 'pip install "oc-dyn[sampling]"' in text
    assert "virtual machine" in text
    assert "needed and missing: numpy" in text


def test_options_name_extras_of_the_package():
    project = (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    for extra, _ in doctor.OPTIONAL.values():
        assert re.search(rf"^{extra} = \[", project, re.MULTILINE), extra


def test_cite_gives_the_works_of_a_source():
    text = od.cite("recursive_body", "inverse_dynamics")
    assert "@inproceedings{KumarMueller2021," in text
    assert "@software{oc_dyn," in text
    assert text.splitlines()[0].startswith("inverse_dynamics, recursive_body: Kumar and Mueller 2021")
    assert od.cite().startswith("@software{oc_dyn,")
    assert f"version = {{{od.__version__}}}" in od.cite()


def test_every_method_can_be_cited():
    for quantity in od.quantities():
        for method in od.methods(quantity):
            assert od.cite(method, quantity).startswith(f"{quantity}, {method}: ")
    with pytest.raises(od.UnknownName, match="recursive_body"):
        od.cite("recursive_bod")
    with pytest.raises(od.UnknownName, match=r"available: .*recursive_spatial.*; .* is a quantity, cite"):
        od.cite("inverse_dynamics")
    with pytest.raises(od.UnknownName, match="method of 'bias'"):
        od.cite("recursive_nothing", "bias")


def test_every_entry_is_of_a_source_and_is_bibtex():
    everything = "\n".join(od.registry.get_method(q, m).source for q in od.quantities() for m in od.methods(q))
    for words, (kind, key, fields) in _WORKS.items():
        assert words in everything, words
        assert re.fullmatch("[A-Za-z]+[0-9]{4}", key)
        assert {"author", "title", "year"} <= set(fields), key
        assert words[-4:] == fields["year"]
        assert all(text.count("{") == text.count("}") for text in fields.values())
        assert kind in ("article", "book", "incollection", "inproceedings", "misc", "techreport")


def test_citation_file_has_the_version():
    text = (Path(__file__).parents[1] / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {od.__version__}\n" in text
