"""The style of figures, phase planes, ways of a tool, and the page of a motion."""

import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn import drawing
from oc_dyn.planning.figures import outermost, positions


@pytest.fixture(scope="module")
def arm():
    return od.robots.by_name("planar_2r")


@pytest.fixture(scope="module")
def plan(arm):
    """A quintic from rest to rest in 2 s."""
    step = np.array([1.0, -0.5])
    pieces = np.zeros((1, 6, 2))
    for k, x in ((3, 60 / 8), (4, -360 / 16), (5, 720 / 32)):  # derivatives at the start
        pieces[0, k] = x * step
    limits = od.Limits(arm.coordinate_names, q=([-2, -2], [2, 2]), v=[1.5, 3.0], tau=50.0)
    return od.Trajectory([0, 2], pieces, joints=arm.coordinate_names, units=("rad", "rad"), robot=arm, limits=limits)


# Machado, Oliveira and Fernandes, "A physiologically-based model for simulation of color vision deficiency" (2009),
# full severity, on linear RGB
SEEN = {
    "all": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}


def lab(hexes, who):
    """CIE L*a*b* (D65) of colours as somebody sees them."""
    rgb = np.array([[int(h[k : k + 2], 16) for k in (1, 3, 5)] for h in hexes]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    linear = np.clip(linear @ np.array(SEEN[who]).T, 0, 1)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = linear @ np.array(to_xyz).T / [0.95047, 1.0, 1.08883]
    f = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.column_stack([116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])])


def nearest(hexes, who):
    points = lab(hexes, who)
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    return apart[np.triu_indices(len(points), 1)].min()


def test_all_figures_are_made_in_the_one_style():
    package = Path(drawing.__file__).parent
    texts = {p.relative_to(package).as_posix(): p.read_text(encoding="utf-8") for p in package.rglob("*.py")}
    drawn = [name for name, text in texts.items() if "import Figure\n" in text and "matplotlib.figure" in text]
    assert len(drawn) > 10
    assert [name for name in drawn if name != "types.py" and "styled(" not in texts[name]] == []


def test_colours_that_nobody_names_are_those_of_the_style():
    from matplotlib.colors import to_hex
    from matplotlib.figure import Figure

    with drawing.styled():
        axes = Figure().subplots()
        found = [axes.plot([0, 1])[0] for _ in range(9)]
        second = to_hex("C1")
    assert [to_hex(x.get_color()).upper() for x in found[:7]] == list(drawing.COLORS)
    assert [x.get_linestyle() for x in found[6:]] == ["-", "--", "--"]
    assert second.upper() == drawing.COLORS[1]
    assert drawing.mark(6) != drawing.mark(7)


@pytest.mark.parametrize("who", SEEN)
@pytest.mark.parametrize("colors, paper", [(drawing.COLORS, "#FFFFFF"), (drawing.ON_DARK, "#15181B")])
def test_colours_are_told_apart_by_everybody(colors, paper, who):
    assert nearest([*colors, paper], who) > 15  # a difference of 2.3 is just noticed
    default = [f"#{x}" for x in "1f77b4 ff7f0e 2ca02c d62728 9467bd 8c564b e377c2".split()]
    if who in ("deutan", "protan"):
        assert nearest(default, who) < nearest(colors, who)  # matplotlib's own are worse


def test_looks_differ():
    for n in (1, 7, 8, 28, 29, 60):
        looks = [drawing.look(i, n) for i in range(n)]
        assert len({(x["color"], x["linestyle"]) for x in looks}) == n
    assert drawing.look(0, 3, limited=False)["linestyle"] == "--"
    assert drawing.look(9, 12, limited=False)["alpha"] < 0.5


@pytest.mark.sample(1)
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("ending", ["svg", "png"])
def test_figures_are_written_light_and_dark(plan, dark, ending, tmp_path):
    figure = plan.phase_plane(tmp_path / f"x.{ending}", dark=dark)
    data = (tmp_path / f"x.{ending}").read_bytes()
    if ending == "svg":
        assert ElementTree.fromstring(data).tag.endswith("svg")
    else:
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
    wanted = "#15181b" if dark else "#ffffff"
    from matplotlib.colors import to_hex

    assert to_hex(figure.get_facecolor()) == wanted
    assert to_hex(figure.axes[0].get_facecolor()) == wanted
    assert to_hex(figure.axes[0].lines[0].get_color()) == (drawing.ON_DARK if dark else drawing.COLORS)[0].lower()


@pytest.mark.slow
def test_svg_of_the_same_motion_is_the_same_file(plan, tmp_path):
    for name in ("a.svg", "b.svg"):
        plan.phase_plane(tmp_path / name)
    dates = re.compile(rb"<dc:date>.*?</dc:date>")
    first, second = (dates.sub(b"", (tmp_path / name).read_bytes()) for name in ("a.svg", "b.svg"))
    assert first == second


def test_phase_plane_shows_motion_limits_and_units(plan):
    figure = plan.phase_plane()
    for i, axis in enumerate(figure.axes):
        assert axis.get_title() == plan.joints[i]
        assert axis.get_xlabel() == "position [rad]"
        assert axis.get_ylabel() == "velocity [rad/s]"
        x, y = axis.lines[0].get_data()
        assert x[[0, -1]] == pytest.approx([0, [1, -0.5][i]])
        at = np.abs(y).argmax()  # of a quintic in the middle: 15/8 of the mean velocity
        assert abs(y[at]) == pytest.approx(15 / 8 * abs([1, -0.5][i]) / 2, rel=1e-4)
        bounds = [line.get_xydata() for line in axis.lines[3:]]
        assert {float(b[0, 0]) for b in bounds[:2]} == {-2, 2}
        assert {float(b[0, 1]) for b in bounds[2:]} == {-[1.5, 3.0][i], [1.5, 3.0][i]}


def test_the_way_of_the_tool_is_where_the_tool_is(plan, arm):
    frame = outermost(arm)
    figure = plan.tool_path()
    assert frame in figure.get_suptitle()
    x, z = figure.axes[1].lines[0].get_data()
    for k in (0, 300, -1):
        t = np.linspace(0, 2, len(x))[k]
        p = od.function(arm, "frame_pose", frame=frame)(q=plan.sample([t]).q[0])["p"].full().ravel()
        np.testing.assert_allclose([x[k], z[k]], p[[0, 2]], atol=1e-9)
    samples = plan.sample(1e-3)
    p, speed = positions(arm, frame, samples)
    np.testing.assert_allclose(speed[1:-1], np.linalg.norm(p[2:] - p[:-2], axis=1) / 2e-3, atol=1e-5)
    (legend,) = (x.get_text() for x in figure.axes[3].get_legend().get_texts())  # of the marks
    marks = next(x for x in figure.axes[3].lines if x.get_label() == legend)
    assert legend == "every 0.5 s, in all panels"
    assert np.allclose(np.diff(marks.get_xdata()), 0.5, atol=0.01)
    labels = [(a.get_xlabel(), a.get_ylabel()) for a in figure.axes]
    assert labels == [("x [m]", "y [m]"), ("x [m]", "z [m]"), ("y [m]", "z [m]"), ("time [s]", "speed [m/s]")]


def test_what_is_missing_is_named(plan, arm):
    bare = od.Trajectory(plan.t, plan.pieces, joints=plan.joints, units=plan.units)
    with pytest.raises(od.ModelError, match="tool_path needs the robot"):
        bare.tool_path()
    with pytest.raises(od.UnknownName, match="no frame of"):
        plan.tool_path(frame="hand")
    with pytest.raises(od.ShapeError, match="phase_plane: dark"):
        plan.phase_plane(dark="yes")


class Page(HTMLParser):
    """Counts tags, checks that they close, and keeps addresses."""

    def __init__(self):
        super().__init__()
        self.open, self.count, self.addresses, self.text, self.inner = [], {}, [], [], []

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        facts = dict(attrs)
        self.addresses += [x for k, x in attrs if k in ("src", "href", "xlink:href")]
        self.inner += [facts["srcdoc"]] if "srcdoc" in facts else []
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        self.addresses += [x for k, x in attrs if k in ("src", "href", "xlink:href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.slow
def test_the_page_is_whole_and_fetches_nothing(plan, tmp_path):
    path = plan.report(tmp_path / "plan.html", title="A <b> & c")
    assert path == tmp_path / "plan.html"
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    assert page.open == []
    assert page.count["svg"] == 6  # three figures, light and dark
    assert page.count["iframe"] == 1
    assert [x for x in page.addresses if not x.startswith("#")] == []
    told = " ".join(page.text)
    assert "A <b> & c" in told
    assert str(plan.check()).splitlines()[-1] in told
    for row in plan.check().rows:
        if np.isfinite(row.limit):
            assert f"{100 * row.share:.2f} %" in told
            assert f"{row.value:.6g}" in told
    assert "<canvas" in page.inner[0]


def test_the_page_checks_and_draws_what_a_plan_was_made_among(plan, monkeypatch, tmp_path):
    from oc_dyn.planning import page

    shown = []
    monkeypatch.setattr(page, "plot", lambda motion, path, normalized, scene, dark: shown.append(scene))
    monkeypatch.setattr(page, "_svg", lambda draw, dark: str(draw(dark)))
    for other in ("phase_plane", "tool_path"):
        monkeypatch.setattr(page, other, lambda *options: None)
    robot = plan.robot
    ball = od.scene.shapes.Sphere(0.1)
    far = np.eye(4)
    far[0, 3] = 5.0
    scene = od.Scene().attach("tool", robot.bodies[-1].name, ball).add("pillar", ball, far)
    limits, among = plan.limits.without("tau"), {"scene": scene, "clearance": 0.02}
    made = od.plan_point_to_point(robot, [0.0, 0.0], [0.5, -0.3], limits=limits, continuity=2, nodes=10, **among)
    assert made.scene is scene
    assert made.stretched(2.0).scene is scene
    text = made.report(tmp_path / "made.html").read_text(encoding="utf-8")
    assert shown == [scene, scene]
    assert "tool - pillar" in text
    assert "<td>0.02</td>" in text  # the clearance that was asked for


@pytest.mark.slow
def test_the_page_without_the_robot_has_what_is_left(plan, tmp_path):
    bare = od.Trajectory(plan.t, plan.pieces, joints=("<a>", "b"), units=plan.units)
    page = Page()
    page.feed(bare.report(tmp_path / "bare.html").read_text(encoding="utf-8"))
    assert page.open == []
    assert page.count["svg"] == 4
    assert "iframe" not in page.count
    assert "<a>, b" in " ".join(page.text)
