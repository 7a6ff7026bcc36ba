"""Reading of files that real tools write: odd declarations, long chains, and hints that fit the fault."""

import numpy as np
import pytest
from effort import function_calls
from urdf_files import quiet

import oc_dyn as od
from oc_dyn.errors import ModelError, ModelWarning

BODY = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
LIMIT = '<limit effort="1" velocity="1"/>'


def joint(name, parent, child, inside=LIMIT, kind="continuous"):
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="0 0 1"/>{inside}</joint>'
    )


def two(tip=BODY, inside=LIMIT, more=""):
    return (
        f'<robot name="Zoë"><link name="base"/><link name="tip">{tip}</link>{more}'
        f"{joint('turn', 'base', 'tip', inside)}</robot>"
    )


# -- declarations ---------------------------------------------------------------------------------------------

DECLARATIONS = [
    '<?xml version="0.0" ?>',
    '<?xml version="0.1"?>',
    "<?xml version='2.0' standalone='yes'?>",
    '<?xml version="1.0" encoding="utf-8"?>',
    '<?xml version="0.0"\n encoding="UTF-8"?>',
    '<?xml encoding="utf-8"?>',
    '<?xml version="1.1" encoding="UTF-8" standalone="no"?>\r\n\r\n',
    ' \r\n\t<?xml version="0.0" ?>\n',
]


@pytest.mark.parametrize("form", ["path", "bytes", "str"])
@pytest.mark.parametrize("declaration", DECLARATIONS)
def test_declarations_load_in_all_forms(declaration, form, tmp_path):
    text = declaration + two()
    file = tmp_path / "robot.urdf"
    file.write_bytes(text.encode())
    assert quiet({"path": file, "bytes": text.encode(), "str": text}[form]).name == "Zoë"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("declaration", DECLARATIONS)
def test_lines_are_counted_as_in_the_file(declaration, mark):
    text = declaration + "\n" + two(tip='<inertial><mass value="x"/></inertial>')
    with pytest.raises(ModelError) as caught:
        od.load_urdf(mark + text.encode())
    with pytest.raises(ModelError) as again:
        od.load_urdf(text)
    line = 1 + declaration.count("\n") + 1
    assert caught.value.problems[0].startswith(f"line {line}: link 'tip'")
    assert again.value.problems == caught.value.problems


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "iso-8859-15"])
def test_a_wrong_version_keeps_the_encoding(encoding):
    text = f'<?xml version="0.0" encoding="{encoding}"?>' + two()
    assert quiet(text.encode(encoding)).name == "Zoë"


# -- long chains ----------------------------------------------------------------------------------------------


def chain(n, mimic):
    text = '<robot name="long"><link name="l0"/>'
    for k in range(1, n + 1):
        follow = f'<mimic joint="j{k - 1}" multiplier="-1" offset="0.5"/>' if mimic and k > 1 else ""
        text += f'<link name="l{k}">{BODY}</link>' + joint(f"j{k}", f"l{k - 1}", f"l{k}", LIMIT + follow)
    return text + "</robot>"


@pytest.mark.sample("True")
@pytest.mark.parametrize("mimic", [True, False])
def test_work_is_linear_in_the_joints(mimic):
    few, many = (function_calls(lambda n=n: quiet(chain(n, mimic))) for n in (50, 400))
    assert many < 12 * few  # 8 times the joints


def test_rules_of_chained_mimic_joints():
    """q_k = -q_(k-1) + 0.5 for every joint but the first, whatever their order in the file."""
    robot = quiet(chain(60, True))
    q = [0.3]
    for _ in range(59):
        q.append(-q[-1] + 0.5)
    rules = {j.name: j.mimic for j in robot.mimics}
    assert robot.nq == 1
    assert [rules[f"j{k}"].multiplier * 0.3 + rules[f"j{k}"].offset for k in range(2, 61)] == pytest.approx(q[1:])


# -- hints ----------------------------------------------------------------------------------------------------


def problem(text):
    with pytest.raises(ModelError) as caught:
        od.load_urdf(text)
    return "\n".join(caught.value.problems)


@pytest.mark.parametrize("numbers", ["0.1, 0.2, 0.3", "0.1,0.2,0.3", "0.1 , 0.2 ,0.3", "1; 2; 3", "1, 2 3"])
def test_commas_between_numbers(numbers):
    said = problem(two(inside=f'{LIMIT}<origin xyz="{numbers}"/>'))
    assert "joint 'turn'" in said
    assert "numbers stand apart by blanks" in said
    assert "decimal comma" not in said


@pytest.mark.parametrize("numbers", ["0,1 0,2 0,3", "0,1 2 3"])
def test_decimal_commas(numbers):
    assert "decimal comma" in problem(two(inside=f'{LIMIT}<origin xyz="{numbers}"/>'))


def test_a_decimal_comma_where_one_number_stands():
    assert "decimal comma" in problem(two(tip='<inertial><mass value="1,5"/></inertial>'))


def test_a_joint_from_a_link_to_itself():
    said = problem(two(more=joint("loop", "tip", "tip")))
    assert "joint 'loop': link 'tip' is its parent and its child" in said


def test_loops_name_links_and_joints():
    more = '<link name="a"/><link name="b"/>' + joint("there", "a", "b") + joint("back", "b", "a")
    said = problem(two(more=more))
    assert "kinematic loop: b, a by joints 'there', 'back'" in said or "a, b by joints 'back', 'there'" in said


# -- what will not move ---------------------------------------------------------------------------------------


def test_a_movable_leaf_without_inertia():
    with pytest.warns(ModelWarning, match="line 1: joint 'turn' moves no inertia; forward dynamics needs"):
        robot = od.load_urdf(two(tip=""))
    assert any("joint 'turn' moves no inertia" in x for x in robot.report)


def test_a_massless_link_that_carries_a_mass_is_fine():
    quiet(two(tip="", more=f'<link name="hand">{BODY}</link>' + joint("wrist", "tip", "hand")))


def test_armature_and_locks_cure_a_movable_leaf():
    quiet(two(tip="", inside=f'{LIMIT}<dynamics armature="0.1"/>'))
    quiet(two(tip=""), lock={"turn": 0.0})


@pytest.mark.parametrize("limit", ["effort", "velocity"])
def test_limits_of_zero(limit):
    inside = LIMIT.replace(f'{limit}="1"', f'{limit}="0"')
    with pytest.warns(ModelWarning, match=f"joint 'turn': its {limit} limit is 0"):
        robot = od.load_urdf(two(inside=inside))
    assert robot.limit(limit).tolist() == [0.0]
    quiet(two(inside=inside), lock={"turn": 0.0})


def test_the_builder_tells_too():
    b = od.RobotBuilder("r")
    b.add_link("base")
    b.add_body("arm", "revolute", "base", velocity=0.0, mass=1.0, com=(0.1, 0, 0))
    b.add_body("eye", "revolute", "arm")
    with pytest.warns(ModelWarning) as seen:
        robot = b.build()
    assert [str(w.message) for w in seen] == [f"r: {x}" for x in robot.report]
    assert "joint 'eye_joint' moves no inertia" in robot.report[0]
    assert "joint 'arm_joint': its velocity limit is 0" in robot.report[1]


def test_strict_refuses_what_will_not_move():
    with pytest.raises(ModelError, match="joint 'turn' moves no inertia"):
        od.load_urdf(two(tip=""), strict=True)


def test_many_are_told_in_one_warning():
    with pytest.warns(ModelWarning) as seen:
        od.load_urdf(chain(9, False).replace(BODY, ""))
    assert len(seen) == 1
    assert "and 6 more, see robot.report" in str(seen[0].message)
    assert np.all([f"'j{k}'" in str(seen[0].message) for k in (1, 2, 3)])


@pytest.mark.parametrize("xyz", ["1e31 0 0", "0 0 1e300", "0 1e999 0"])
@pytest.mark.parametrize("tag", ["axis", "origin"])
def test_numbers_too_large_are_not_taken_for_commas(tag, xyz):
    text = two().replace('<axis xyz="0 0 1"/>', f'<{tag} xyz="{xyz}"/>')
    with pytest.raises(ModelError, match="is too large") as caught:
        od.load_urdf(text)
    assert "blanks" not in str(caught.value)


def test_commas_between_numbers_are_told():
    with pytest.raises(ModelError, match="not by commas"):
        od.load_urdf(two().replace('xyz="0 0 1"', 'xyz="0,0,1"'))
