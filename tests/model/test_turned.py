"""load_urdf(root=): the same robot hung up at another link."""

import numpy as np
import pytest
from samples import example_robot, relative

import oc_dyn as od
from oc_dyn.errors import ModelError, UnknownName
from oc_dyn.model.robot import assemble
from oc_dyn.model.turned import turned

LINK = """<link name="{0}"><inertial><origin xyz="{1} 0.03 -0.02" rpy="0.3 {1} 0"/><mass value="{2}"/>
<inertia ixx="0.05" ixy="0.002" ixz="-0.004" iyy="0.06" iyz="0.003" izz="0.07"/></inertial></link>"""
JOINT = """<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz="0.1 {5} 0.3" rpy="0.4 {5} -0.2"/>
<axis xyz="{4}"/><limit lower="-{6}" upper="{7}" velocity="2" effort="{6}"/><dynamics damping="0.3" friction="0.1"/>
{8}</joint>"""  # noqa: E501


def text(kind="prismatic", last=""):
    links = "".join(
        LINK.format(n, 0.1 + 0.02 * k, 1 + 0.3 * k) for k, n in enumerate(("base", "a", "b", "c", "d", "e"))
    )
    joints = (
        JOINT.format("first", "revolute", "base", "a", "0.6 0.8 0", 0.2, 1.1, 0.7, "")
        + JOINT.format("second", kind, "a", "b", "0 0.6 0.8", -0.3, 0.4, 0.9, "")
        + JOINT.format("weld", "fixed", "b", "c", "1 0 0", 0.4, 1, 1, "")
        + JOINT.format("third", "continuous", "c", "d", "0 0 1", 0.1, 2, 3, "")
        + JOINT.format("side", "revolute", "a", "e", "1 0 0", 0.5, 9, 9, '<mimic joint="third" multiplier="-0.5"/>')
    )
    return f'<robot name="arm">{links}{joints}{last}</robot>'


def humanoid(root):
    """The embedded one, which no file describes."""
    r = od.robots.humanoid()
    links, joints, *_ = r.description
    if root is not None:
        links, joints = turned(r.name, links, joints, root)
    return assemble(r.name, links, joints, gravity=r.gravity, floating_base=True)


def pair(name):
    """(robot, the same at another root, that root)."""
    if name == "humanoid":
        root = list(od.robots.humanoid().bodies)[-1].name
        return humanoid(None), humanoid(root), root
    if name == "talos":
        file = example_robot("talos_data/robots/talos_reduced.urdf")
        root = "arm_right_7_link"
        return od.load_urdf(file, floating_base=True), od.load_urdf(file, floating_base=True, root=root), root
    root = name
    return od.load_urdf(text(), floating_base=True), od.load_urdf(text(), floating_base=True, root=root), root


def value(r, quantity, order=0, options=None, **ports):
    f = od.function(r, quantity, order=order, **(options or {}))
    return {k: x.full().squeeze() for k, x in f(**{k: ports[k] for k in f.name_in()}).items()}


def pose_of(C):
    """Coordinates of a free joint at the pose C (4, 4)."""
    R = C[:3, :3]
    turn = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    K = np.block([[np.trace(R), turn], [turn[:, None], R + R.T - np.trace(R) * np.eye(3)]])  # Bar-Itzhack 2000
    return np.concatenate([np.linalg.eigh(K)[1][:, -1], C[:3, 3]])


class Map:
    """q, v, dv of a floating robot from those of another one that has the same joints but floats at the link `base`."""

    def __init__(self, old, new, base):
        self.old, self.new, self.base = old, new, base
        at = {n: k for k, n in enumerate(old.velocity_names)}
        self.rows = [at.get(n) for n in new.velocity_names]
        coordinates = {n: k for k, n in enumerate(old.coordinate_names)}
        self.coordinates = [coordinates.get(n) for n in new.coordinate_names]

    def q(self, q):
        C = value(self.old, "frame_pose", options={"frame": self.base}, q=q)["C"]
        return np.concatenate([pose_of(C), q[[k for k in self.coordinates[7:]]]])

    def v(self, **motion):
        options = {"frame": self.base, "representation": "body"}
        y = value(self.old, "frame_twist", 1, options, **motion)
        rest = self.rows[6:]
        return np.concatenate([y["V"], motion["v"][rest]]), np.concatenate([y["dV"], motion["dv"][rest]])


CASES = [
    "d",
    pytest.param("b", marks=pytest.mark.slow),
    pytest.param("e", marks=pytest.mark.slow),
    pytest.param("humanoid", marks=pytest.mark.slow),
    pytest.param("talos", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=CASES)
def case(request):
    old, new, root = pair(request.param)
    rng = np.random.default_rng(3)
    free = slice(6, old.nv)
    tau = np.zeros(old.nv)
    tau[free] = rng.normal(size=old.nv - 6)
    motion = {"q": old.random_configuration(seed=1), "v": rng.normal(size=old.nv)}
    motion["dv"] = value(old, "forward_dynamics", tau=tau, **motion)["dv"]
    there = Map(old, new, root)
    v, dv = there.v(**motion)
    return old, new, there, {**motion, "tau": tau}, {"q": there.q(motion["q"]), "v": v, "dv": dv}


@pytest.mark.slow
def test_links_stand_where_they_stood(case):
    old, new, _, x, y = case
    assert set(old.frames) <= set(new.frames)
    for frame in list(old.frames)[:: len(old.frames) // 6]:
        a, b = (value(r, "frame_pose", options={"frame": frame}, q=z["q"])["C"] for r, z in ((old, x), (new, y)))
        assert relative(a, b) < 1e-9, frame
        options = {"frame": frame, "representation": "body"}
        a, b = (value(r, "frame_twist", 1, options, **z) for r, z in ((old, x), (new, y)))
        assert relative(a["V"], b["V"]) < 1e-9, frame
        assert relative(a["dV"], b["dV"]) < 1e-8, frame


def test_energies_and_momentum_are_the_same(case):
    old, new, _, x, y = case
    for quantity, port in (("kinetic_energy", "T"), ("potential_energy", "U"), ("momentum", "h")):
        assert relative(*(value(r, quantity, **z)[port] for r, z in ((new, y), (old, x)))) < 1e-9, quantity


def test_the_same_torques_make_the_same_motion(case):
    """Of robots that nothing holds: the wrench on either base is zero."""
    _, new, there, x, y = case
    expected = np.concatenate([np.zeros(6), x["tau"][there.rows[6:]]])
    assert np.abs(value(new, "inverse_dynamics", **y)["tau"] - expected).max() < 1e-7 * max(1, np.abs(x["dv"]).max())


def test_joints_keep_names_limits_and_what_follows_them(case):
    old, new, *_ = case
    assert {j.name for j in old.joints} == {j.name for j in new.joints}
    for j in old.joints:
        k = new.joint(j.name)
        for what in ("kind", "lower", "upper", "velocity", "effort", "armature", "damping", "friction"):
            assert getattr(j, what) == getattr(k, what), (j.name, what)
    assert [(j.name, j.mimic) for j in old.mimics] == [(j.name, j.mimic) for j in new.mimics]
    assert new.total_mass == pytest.approx(old.total_mass)


def test_fixed_base():
    """Held at the new root, as the robot that floats and whose link there rests: torques by the principle of virtual
    power, v of one is G times v of the other."""
    held, free = od.load_urdf(text(), root="d"), od.load_urdf(text(), floating_base=True)
    rng = np.random.default_rng(5)
    x = {"q": held.random_configuration(seed=2), "v": rng.normal(size=held.nv), "dv": rng.normal(size=held.nv)}
    options = {"frame": "base", "representation": "body"}
    C = value(held, "frame_pose", options={"frame": "base"}, q=x["q"])["C"]
    V, J = value(held, "frame_twist", 1, options, **x), value(held, "frame_jacobian", options=options, q=x["q"])["J"]
    order = [held.velocity_names.index(n) for n in free.velocity_names[6:]]
    y = {
        "q": np.concatenate([pose_of(C), x["q"][order]]),
        "v": np.concatenate([V["V"], x["v"][order]]),
        "dv": np.concatenate([V["dV"], x["dv"][order]]),
    }
    G = np.vstack([J, np.eye(held.nv)[order]])
    assert (
        relative(value(held, "inverse_dynamics", **x)["tau"], G.T @ value(free, "inverse_dynamics", **y)["tau"]) < 1e-11
    )
    assert value(held, "kinetic_energy", **x)["T"] == pytest.approx(value(free, "kinetic_energy", **y)["T"])


def test_bodies_that_turned_joints_move_are_named_after_them():
    r = od.load_urdf(text(), root="d")
    assert [b.name for b in r.bodies] == ["third", "second", "first", "e"]
    assert r.root == "d"
    assert r.frames["base"].body == 3
    assert relative(r.frame("b").translation, np.zeros(3)) > 0.1  # links keep their frames


def test_a_name_of_a_joint_that_a_link_has():
    more = LINK.format("first", 0.1, 1) + JOINT.format("more", "fixed", "e", "first", "1 0 0", 0, 1, 1, "")
    r = od.load_urdf(text(last=more), root="d")
    assert [b.name for b in r.bodies] == ["third", "second", "first_2", "e"]


def test_the_root_of_the_file_changes_nothing():
    a, b = od.load_urdf(text()), od.load_urdf(text(), root="base")
    assert str(a) == str(b)
    assert [x.name for x in a.bodies] == [x.name for x in b.bodies]


def test_locked_joints_on_the_way():
    lock = {"second": 0.2, "third": -0.4}
    a, b = (od.load_urdf(text(), lock=lock, floating_base=True, root=x) for x in (None, "d"))
    assert b.nv == a.nv == 7
    x = {"q": a.random_configuration(seed=4)}
    y = Map(a, b, "d").q(x["q"])
    for frame in a.frames:
        one, other = (value(r, "frame_pose", options={"frame": frame}, q=q)["C"] for r, q in ((a, x["q"]), (b, y)))
        assert relative(one, other) < 1e-11


def test_collision_shapes_stay_on_their_links():
    sphere = '<collision><origin xyz="0.1 0 0"/><geometry><sphere radius="0.1"/></geometry></collision></link>'
    xml = text().replace("</link>", sphere, 1)
    a, b = od.load_urdf(xml), od.load_urdf(xml, root="d")
    assert [s.link for s in a.collisions] == [s.link for s in b.collisions] == ["base"]


def test_what_is_refused():
    with pytest.raises(UnknownName, match="'f' is no link|link of .*'f'"):
        od.load_urdf(text(), root="f")
    with pytest.raises(UnknownName):
        od.load_urdf(text(), root=3)
    planar = text("planar")
    with pytest.raises(ModelError, match=r"joint 'second' \(planar\) is between root 'd' and link 'base'.*side of 'a'"):
        od.load_urdf(planar, root="d")
    assert od.load_urdf(planar, root="a").root == "a"
    loop = JOINT.format("closing", "revolute", "d", "e", "1 0 0", 0.5, 1, 1, "")
    with pytest.raises(ModelError, match="child of two joints.*closed loops are not supported"):
        od.load_urdf(text(last=loop), root="d")
