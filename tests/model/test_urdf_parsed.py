"""The package's own reader of cleaned URDF documents against urdf_parser_py: every name and number, on all files."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from test_urdf_cases import FOLDER
from urdf_files import example_robots

import oc_dyn as od
from oc_dyn.errors import ModelError
from oc_dyn.model import urdf_parsed
from oc_dyn.model.xml_clean import Findings, clean
from oc_dyn.model.xml_read import read_xml

theirs = pytest.importorskip("urdf_parser_py.urdf").URDF
CASES = sorted(FOLDER.glob("*.urdf"))
EVERYTHING = """<robot name="all &lt;of&gt; it"><link name="a b"/><link name="c"><inertial>
<origin xyz="1e-17 .1 -3" rpy="1 2 3"/><mass value="1.25e-3"/>
<inertia ixx="1" ixy="0.1" ixz="0.2" iyy="2" iyz="0.3" izz="2.5"/></inertial></link><link name="d"/><link name="e"/>
<link name="f"/><joint name="one" type="revolute"><origin xyz="0.1 0.2 0.30000000000000004"
rpy="3.141592653589793 0 1"/><parent link="a b"/><child link="c"/><axis xyz="1 2 3"/><limit lower="-1" upper="2"
effort="3" velocity="1.7976931348623157e308"/><dynamics damping="0.1" friction="0.2"/></joint>
<joint name="two" type="prismatic"><parent link="c"/><child link="d"/><mimic joint="one" multiplier="-0.1" offset="7"/>
</joint><joint name="three" type="floating"><parent link="d"/><child link="e"/></joint>
<joint name="four" type="planar"><parent link="e"/><child link="f"/></joint></robot>"""


def cleaned(file):
    _, stem, tree, offset = read_xml(file)
    return clean(tree, stem, Findings(offset=offset))[0]


def same(ours, given, at=""):
    """Every attribute of an object of ours is there in theirs, and equal."""
    if isinstance(ours, SimpleNamespace):
        for name, x in vars(ours).items():
            if callable(x):
                assert np.array_equal(x(), getattr(given, name)()), f"{at}.{name}"
            else:
                same(x, getattr(given, name), f"{at}.{name}")
    elif isinstance(ours, list) and at.endswith(("links", "joints")):
        assert len(ours) == len(given), at
        for k, (x, y) in enumerate(zip(ours, given, strict=True)):
            same(x, y, f"{at}[{k}]")
    else:
        assert (ours is None and given is None) or np.array_equal(ours, given), at


@pytest.mark.parametrize("file", [*CASES, EVERYTHING], ids=lambda x: getattr(x, "stem", "everything"))
def test_both_readers_say_the_same(file):
    try:
        xml = cleaned(file)
    except ModelError:
        return  # neither sees it: it is no XML that is read
    same(urdf_parsed.own(xml), theirs.from_xml_string(xml))


@pytest.mark.slow
def test_both_readers_say_the_same_of_robots_of_the_world():
    files = example_robots()
    if not files:
        pytest.skip("example-robot-data is not installed")
    for file in files:
        xml = cleaned(file)
        same(urdf_parsed.own(xml), theirs.from_xml_string(xml), file.stem)


def outcome(file):
    """What comes of a file: the robot's table, numbers and report, or the error."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            robot = od.load_urdf(file)
        except ModelError as error:
            return str(error)
        tree = getattr(robot, "tree", robot)
        numbers = [x for b in tree.bodies for x in (*b.rotation.ravel(), *b.translation, *b.inertia.parameters)]
        limits = [getattr(tree.joint(j.name), k) for j in tree.joints for k in ("lower", "upper", "effort", "velocity")]
        return str(robot), numbers, limits, tree.report, [str(w.message) for w in seen]


@pytest.mark.parametrize("file", CASES, ids=lambda x: x.stem)
def test_without_the_package_nothing_is_lost(file, monkeypatch):
    with_it = outcome(file)
    monkeypatch.setattr(urdf_parsed, "URDF", None)
    assert outcome(file) == with_it


def test_where_the_package_is_missing_ours_reads(monkeypatch):
    monkeypatch.setattr(urdf_parsed, "URDF", None)
    assert isinstance(urdf_parsed.parsed(cleaned(EVERYTHING)), SimpleNamespace)
    assert od.load(EVERYTHING).joint("one").effort == 3
