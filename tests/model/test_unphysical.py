"""Masses and inertias that no body has: told with the link and the numbers, refused where motion would run away."""

import warnings

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.errors import ModelError, ModelWarning, ShapeError
from oc_dyn.model.inertia import unphysical


def text(ixx=0.1, iyy=0.1, izz=0.1, ixy=0.0, mass=1.0, com=(0.2, 0, 0), more=""):
    """A link on a joint about z."""
    return f"""<robot name="r"><link name="base"/>
      <link name="arm"><inertial><origin xyz="{com[0]} {com[1]} {com[2]}"/><mass value="{mass!r}"/>
      <inertia ixx="{ixx!r}" iyy="{iyy!r}" izz="{izz!r}" ixy="{ixy!r}"/></inertial></link>{more}
      <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
      <limit effort="1" velocity="1"/></joint></robot>"""


def built(check_inertia=True, mass=1.0, com=(0.2, 0, 0), inertia=(0.1, 0.1, 0.1), armature=0.0):
    b = od.RobotBuilder("r", check_inertia=check_inertia)
    b.add_link("base")
    b.add_body("arm", "revolute", "base", mass=mass, com=com, inertia=np.diag(inertia), armature=armature)
    return b.build()


def silently(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return make()


READERS = {
    "file": lambda moments, **o: od.load_urdf(text(*moments), **o),
    "builder": lambda moments, **o: built(inertia=moments, **o),
    "payload": lambda moments, **o: od.robots.chain(1).with_payload(
        "link1", od.Inertia.from_com(1.0, (0.2, 0, 0), np.diag(moments)), "arm", **o
    ),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_broken_triangle_inequality_is_told(reader):
    with pytest.warns(ModelWarning, match="link 'arm': no real body has .* 0.1, 0.1, 0.3 kg m.2, the largest exceeds"):
        assert READERS[reader]((0.1, 0.1, 0.3)).nv == 1


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.filterwarnings("ignore::oc_dyn.errors.ModelWarning")
def test_an_indefinite_mass_matrix_is_refused(reader):
    with pytest.raises(ModelError, match="link 'arm': no real body has .* -90, .* one is negative; the mass matrix"):
        READERS[reader]((0.1, 0.1, -90.0))


@pytest.mark.parametrize("reader", READERS)
def test_all_is_taken_in_silence_when_told_so(reader):
    robot = silently(lambda: READERS[reader]((0.1, 0.1, -90.0), check_inertia=False))
    assert od.function(robot, "mass_matrix")(q=0)["M"].full().item() < -80


@pytest.mark.parametrize("reader", ["file", "builder"])
def test_silence_still_leaves_a_note(reader):
    assert any("'arm'" in x for x in READERS[reader]((0.1, 0.1, -90.0), check_inertia=False).report)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e6])
@pytest.mark.parametrize("moments", [(0.1, 0.2, 0.3), (0.1, 0.2, 0.3 + 2e-7), (0.1, 0.1, -5e-8 + 0.0), (0.0, 0.1, 0.1)])
def test_rounding_to_one_in_a_million_is_not_told(reader, scale, moments):
    silently(lambda: READERS[reader](tuple(scale * x for x in moments)))


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("scale", [1.0, 1e-9, 1e6])
def test_more_than_rounding_is_told(reader, scale):
    with pytest.warns(ModelWarning, match="link 'arm'"):
        READERS[reader]((scale * 0.1, scale * 0.2, scale * (0.3 + 1e-6)))


def test_what_makes_up_for_a_negative_moment_lets_it_pass():
    """M = izz + m c^2 + armature: -0.02 + 0.04, and -0.5 + 0.04 + 0.6."""
    with pytest.warns(ModelWarning, match="one is negative"):
        robot = od.load_urdf(text(izz=-0.02))
    assert od.function(robot, "mass_matrix")(q=0)["M"].full().item() == pytest.approx(0.02)
    with pytest.warns(ModelWarning, match="one is negative"):
        geared = built(inertia=(0.1, 0.1, -0.5), armature=0.6)
    assert od.function(geared, "mass_matrix")(q=0)["M"].full().item() == pytest.approx(0.14)


def test_products_of_inertia_count():
    with pytest.warns(ModelWarning, match="principal moments of inertia -0.08, 0.1, 0.28 "):
        od.load_urdf(text(ixx=0.1, iyy=0.1, izz=0.1, ixy=0.18))


def test_strict_refuses_and_names_the_line():
    with pytest.raises(ModelError, match="line 2: link 'arm': no real body"):
        od.load_urdf(text(izz=0.3), strict=True)


def test_many_bad_links_make_one_warning():
    more = "".join(
        f'<link name="l{k}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="3"/></inertial></link>'
        f'<joint name="j{k}" type="fixed"><parent link="arm"/><child link="l{k}"/></joint>'
        for k in range(6)
    )
    with pytest.warns(ModelWarning) as seen:
        robot = od.load_urdf(text(more=more))
    assert len(seen) == 1
    assert all(f"link 'l{k}'" in str(seen[0].message) for k in range(3))
    assert "and 3 more, see robot.report" in str(seen[0].message)
    assert sum("no real body" in x for x in robot.report) == 6


@pytest.mark.parametrize("reader", ["file", "builder"])
def test_negative_masses(reader):
    make = {"file": lambda **o: od.load_urdf(text(mass=-1.0), **o), "builder": lambda **o: built(mass=-1.0, **o)}[
        reader
    ]
    with pytest.raises(ModelError, match="link 'arm'.*(negative|at least 0)"):
        make()
    robot = silently(lambda: make(check_inertia=False))
    assert od.function(robot, "mass_matrix")(q=0)["M"].full().item() == pytest.approx(0.1 - 0.04)


def test_a_payload_may_not_take_away_more_than_there_is():
    r = od.robots.chain(1)
    with pytest.raises(ModelError, match="link 'gone': its mass -1000 kg is negative; the mass matrix"):
        r.with_payload("link1", od.Inertia.from_com(-1000.0, (1, 1, 1)), "gone")


def test_bodies_of_points_are_physical_and_stop_being_so():
    """Tensors of random point masses never complain; a little beyond the inequality always does."""
    rng = np.random.default_rng(0)
    for _ in range(100):
        m, x = rng.uniform(0.1, 1, 6), rng.normal(size=(6, 3))
        x -= m @ x / m.sum()
        T = sum(a * (y @ y * np.eye(3) - np.outer(y, y)) for a, y in zip(m, x, strict=True))
        assert unphysical(m.sum(), T) is None
        moments, axes = np.linalg.eigh(T)
        worse = axes @ np.diag([moments[0], moments[1], (moments[0] + moments[1]) * (1 + 1e-5)]) @ axes.T
        assert "exceeds" in unphysical(m.sum(), worse)


# -- what is no inertia at all --------------------------------------------------------------------------------

LOPSIDED = [[0.01, 0.002, 0], [0, 0.01, 0], [0, 0, 0.01]]


@pytest.mark.parametrize("make", [od.Inertia, od.Inertia.from_com])
@pytest.mark.parametrize(
    "mass, moment, tensor, words",
    [
        (1, (0, 0, 0.1), LOPSIDED, "tensor is not symmetric: xy is 0.002, yx is 0"),
        (np.nan, (0, 0, 0.1), np.eye(3), "mass is nan"),
        (np.inf, (0, 0, 0.1), np.eye(3), "mass is inf"),
        ("1", (0, 0, 0.1), np.eye(3), "Inertia: mass"),
        (1, (0, 0), np.eye(3), r"of shape \(3,\)"),
        (1, (0, 0, np.nan), np.eye(3), r"finite numbers of shape \(3,\)"),
        (1, (0, 0, 0.1), np.eye(2), r"of shape \(3, 3\)"),
    ],
)
def test_inertias_are_checked_where_they_are_made(make, mass, moment, tensor, words):
    with pytest.raises(ShapeError, match=words):
        make(mass, moment, tensor)


def test_lists_make_an_inertia_and_a_payload():
    payload = od.Inertia(1, [0, 0, 0.1], [[0.02, 0, 0], [0, 0.02, 0], [0, 0, 0.02]])
    heavier = od.robots.panda().with_payload("panda_link8", payload)
    assert heavier.total_mass == pytest.approx(od.robots.panda().total_mass + 1)


def test_a_tensor_symmetric_to_rounding_becomes_so():
    tensor = np.diag([0.02, 0.03, 0.04])
    tensor[0, 1], tensor[1, 0] = 1e-3, 1e-3 + 1e-12
    kept = od.Inertia(1, np.zeros(3), tensor).tensor
    assert np.array_equal(kept, kept.T)
