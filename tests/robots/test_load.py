"""od.load: which reader takes what, where names are looked for, what is refused."""

import importlib.util
from types import SimpleNamespace

import pytest

import oc_dyn as od
from oc_dyn.robots import found_by_name

URDF = """<robot name="arm"><link name="base"/><link name="tip"><inertial><mass value="1"/>
  <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="j" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="0 0 1"/></joint></robot>"""
SDF = """<sdf version="1.7"><model name="arm"><link name="base"/><link name="tip"/>
  <joint name="j" type="revolute"><parent>base</parent><child>tip</child><axis><xyz>0 0 1</xyz></axis></joint>
  </model></sdf>"""
MJCF = """<mujoco model="arm"><worldbody>
  <body name="tip"><joint name="j"/><geom size="0.1"/></body></worldbody></mujoco>"""
XACRO = URDF.replace("<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ').replace(
    "<link name=\"base\"/>", '<xacro:property name="m" value="${2 + 3}"/><link name="base"/>'
).replace('mass value="1"', 'mass value="${m}"')  # fmt: skip


@pytest.mark.parametrize("text, reader", [(URDF, "load_urdf"), (SDF, "load_sdf"), (MJCF, "load_mjcf")])
@pytest.mark.parametrize("ending", [".xml", ".urdf", None])
def test_the_first_element_tells_what_a_file_is(text, reader, ending, tmp_path):
    if reader == "load_mjcf":
        pytest.importorskip("mujoco")
    given = text
    if ending:
        given = tmp_path / f"arm{ending}"
        given.write_text(text)
    robot = od.load(given)
    assert robot.coordinate_names == ("j",)
    assert robot.report[-1].endswith(f"by {reader}")
    if ending:
        assert od.load(str(given)).nv == 1
        assert od.load(text.encode()).nv == 1


def test_names_of_the_package():
    assert od.load("panda").nv == 7
    assert od.load("chain:4").nv == 4
    assert od.load("panda").report[-1] == "a robot of the package"
    with pytest.raises(od.ShapeError, match="takes no options"):
        od.load("panda", gravity=(0, 0, 0))


def test_names_of_example_robot_data(monkeypatch):
    if not found_by_name._of_example_robot_data():
        pytest.skip("example-robot-data is not installed")
    robot = od.load("ur5_robot", floating_base=True)
    assert robot.nv == 12
    assert "ur5_robot.urdf of example-robot-data" in robot.report[-1]
    assert "cassie" in found_by_name._of_example_robot_data()


def test_what_is_nowhere_is_told_with_near_names():
    with pytest.raises(od.UnknownName, match="panda"):
        od.load("pandas")
    with pytest.raises(FileNotFoundError):
        od.load("pandas.urdf")
    with pytest.raises(od.ShapeError, match="got int, expected a path"):
        od.load(3)


def test_where_more_names_are_is_told_where_it_is_not_installed(monkeypatch):
    with monkeypatch.context() as without:
        without.setattr(found_by_name, "_of_example_robot_data", dict)
        without.setattr(found_by_name, "_menagerie_names", list)
        without.setattr(found_by_name, "_in_descriptions", lambda name, download: None)
        for name in ("ur10e", "talos_reduced"):
            with pytest.raises(od.UnknownName, match=r'"oc-dyn\[names\]", and od.load\(name, download=True\)'):
                od.load(name)
    monkeypatch.setattr(found_by_name, "_of_example_robot_data", lambda: {"arm": None})
    monkeypatch.setattr(found_by_name, "_menagerie_names", lambda: ["arm_mj"])
    with pytest.raises(od.UnknownName) as told:
        od.load("no_such_robot")
    assert "pip install" not in str(told.value)


def test_options_of_the_reader():
    assert od.load(URDF, gravity=(0, 0, -1)).gravity[2] == -1
    with pytest.raises(od.ShapeError, match="load_urdf of a text takes no such option"):
        od.load(URDF, floating=True)
    with pytest.raises(od.ModelError, match="<robot>, <sdf>, <mujoco>"):
        od.load("<html/>")


def test_xacro_is_expanded_only_where_it_is_trusted(tmp_path):
    file = tmp_path / "arm.urdf.xacro"
    file.write_text(XACRO)
    with pytest.raises(od.ModelError, match="trusted=True"):
        od.load(file)
    if importlib.util.find_spec("xacrodoc") is None and importlib.util.find_spec("xacro") is None:
        with pytest.raises(od.ModelError, match=r"oc-dyn\[xacro\]"):
            od.load(file, trusted=True)
        return
    assert od.load(file, trusted=True).body("tip").inertia.mass == 5
    file.write_text(XACRO.replace("2 + 3", "nothing"))
    with pytest.raises(od.ModelError, match="xacro: "):
        od.load(file, trusted=True)


# -- wheels that fetch: stand-ins -----------------------------------------------------------------------------------


@pytest.fixture
def menagerie(tmp_path, monkeypatch):
    """A stand-in for mujoco_menagerie, whose models are there or not."""
    (tmp_path / "maker_arm7").mkdir()
    file = tmp_path / "maker_arm7" / "arm7.xml"
    file.write_text(MJCF)
    state = SimpleNamespace(cached=False, fetched=0)

    def xml(_):
        state.fetched += not state.cached
        return file

    entry = SimpleNamespace(default_model="arm7", xml=xml)
    cache = SimpleNamespace(root=None, is_cached=lambda _: state.cached)
    modules = {
        "mujoco_menagerie": SimpleNamespace(names=lambda: ["maker_arm7", "other_hand"], get=lambda _: entry),
        "mujoco_menagerie._cache": SimpleNamespace(Cache=lambda: cache),
    }
    find, load = importlib.util.find_spec, importlib.import_module
    monkeypatch.setattr(importlib.util, "find_spec", lambda x, *y: object() if x == "mujoco_menagerie" else find(x, *y))
    monkeypatch.setattr(importlib, "import_module", lambda x, *y: modules.get(x) or load(x, *y))
    return state


@pytest.mark.parametrize("name", ["maker_arm7", "arm7"])
def test_the_menagerie_fetches_only_where_it_is_let(menagerie, name):
    pytest.importorskip("mujoco")
    with pytest.raises(od.ModelError, match="maker_arm7 of mujoco_menagerie is not on this computer; download=True"):
        od.load(name)
    assert menagerie.fetched == 0
    robot = od.load(name, download=True)
    assert menagerie.fetched == 1
    assert robot.report[-1] == "read from maker_arm7/arm7.xml of mujoco_menagerie by load_mjcf"
    menagerie.cached = True
    assert od.load(name).nv == 1
    assert menagerie.fetched == 1


def test_robot_descriptions_of_the_cache_alone(tmp_path, monkeypatch):
    package = tmp_path / "robot_descriptions"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "_repositories.py").write_text(
        "from types import SimpleNamespace\nREPOSITORIES = {'some-arms': SimpleNamespace(cache_path='some_arms')}\n"
    )
    (package / "arm9_description.py").write_text(
        f"def _clone_to_cache(name):\n    return name\nREPOSITORY_PATH = _clone_to_cache(\n    'some-arms',\n)\n"
        f"URDF_PATH = {str(tmp_path / 'arm9.urdf')!r}\n"
    )
    (tmp_path / "arm9.urdf").write_text(URDF)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in [x for x in __import__("sys").modules if x.startswith("robot_descriptions")]:
        monkeypatch.delitem(__import__("sys").modules, name)
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path / "cache"))
    with pytest.raises(od.ModelError, match="arm9_description of robot_descriptions is not on this computer"):
        od.load("arm9")
    (tmp_path / "cache" / "some_arms").mkdir(parents=True)
    assert od.load("arm9").report[-1] == "read from arm9.urdf of robot_descriptions by load_urdf"
