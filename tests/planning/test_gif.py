"""Pictures and animations: drawn once, and as matplotlib alone would draw them."""

import numpy as np
import pytest

import oc_dyn as od
from oc_dyn.files import save_figure
from oc_dyn.planning.gif import write_gif

pytest.importorskip("matplotlib")
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D
from PIL import Image


def counted(inner, found, what):
    def noted(*args, **options):
        found[what] += 1
        return inner(*args, **options)

    return noted


@pytest.fixture
def count(monkeypatch):
    """{what: how often}, from now on: Figures made, and drawn in full."""
    found = {"made": 0, "drawn": 0, "axes": 0}
    for cls, name, what in ((Figure, "__init__", "made"), (Figure, "draw", "drawn"), (Axes3D, "draw", "axes")):
        monkeypatch.setattr(cls, name, counted(getattr(cls, name), found, what))
    return found


def motion():
    pieces = np.zeros((1, 4, 2))
    pieces[0, 1], pieces[0, 3] = 1.0, (-2.0, -1.0)
    limits = od.Limits(("a", "b"), v=5.0)
    return od.Trajectory([0, 1], pieces, joints=("a", "b"), units=("rad", "rad"), limits=limits)


def frames(path):
    with Image.open(path) as image:
        for k in range(image.n_frames):
            image.seek(k)
            yield np.asarray(image.convert("RGB")).astype(int), image.info["duration"]


@pytest.mark.slow
def test_a_picture_is_drawn_once_and_is_what_savefig_writes(count, tmp_path):
    figure = motion().plot(tmp_path / "x.png")
    assert count["made"] == 1
    assert count["drawn"] == 1
    assert figure.dpi == 100
    assert type(figure.get_layout_engine()).__name__ == "ConstrainedLayoutEngine"
    again = motion().plot()
    again.savefig(tmp_path / "y.png", dpi=300)
    with Image.open(tmp_path / "x.png") as ours, Image.open(tmp_path / "y.png") as theirs:
        assert ours.info == theirs.info
        assert np.array_equal(np.asarray(ours), np.asarray(theirs)[..., :3])
        assert (np.asarray(theirs)[..., 3] == 255).all()
    figure.set_facecolor((1, 1, 1, 0.5))
    save_figure(figure, tmp_path / "clear.png", 20)
    with Image.open(tmp_path / "clear.png") as image:
        assert image.mode == "RGBA"
        assert image.getpixel((0, 0))[3] == 128


@pytest.mark.slow
def test_settings_of_matplotlib_count(tmp_path):
    import matplotlib as mpl

    for settings in ({"savefig.bbox": "tight"}, {"savefig.facecolor": "0.9"}, {"savefig.transparent": True}):
        with mpl.rc_context(settings):
            motion().plot(tmp_path / "x.png")
            motion().plot().savefig(tmp_path / "y.png", dpi=300)
        with Image.open(tmp_path / "x.png") as ours, Image.open(tmp_path / "y.png") as theirs:
            assert np.array_equal(np.asarray(ours), np.asarray(theirs))


def test_an_animation_draws_its_axes_once(count, tmp_path):
    od.animate(
        od.robots.planar_2r(),
        np.linspace(0, 0.3, 30),
        np.random.default_rng(0).normal(size=(30, 2)),
        tmp_path / "x.gif",
    )
    assert count == {"made": 1, "drawn": 1, "axes": 1}
    assert len(list(frames(tmp_path / "x.gif"))) == 9


def figure_with_a_line(size=(1.2, 1.0)):
    figure = Figure(figsize=size, dpi=100)
    FigureCanvasAgg(figure)
    axis = figure.add_subplot(projection="3d")
    line, title = axis.plot([], [], [], "-o", color="C0")[0], axis.set_title("")

    def show(k):
        line.set_data_3d([0, 1], [0, 0.1 * k], [0, np.cos(k)])
        title.set_text(f"picture {k}")

    return figure, [line, title], show


@pytest.mark.slow
def test_every_picture_is_as_it_would_be_alone(tmp_path):
    figure, moving, show = figure_with_a_line()
    write_gif(figure, moving, show, 7, tmp_path / "x.gif", 70)
    found = list(frames(tmp_path / "x.gif"))
    assert [duration for _, duration in found] == [70] * 7
    for k, (picture, _) in enumerate(found):
        alone, _, show = figure_with_a_line()
        show(k)
        alone.canvas.draw()
        apart = np.abs(picture - np.asarray(alone.canvas.buffer_rgba())[..., :3])
        assert apart.max() <= 48  # where a line is elsewhere, 100 and more
        assert np.sqrt(np.mean(apart**2)) < 0.5


def test_few_colors_are_exact_and_what_stands_still_is_one_picture(tmp_path):
    figure = Figure(figsize=(0.8, 0.6), dpi=100)
    FigureCanvasAgg(figure)
    patch = figure.text(0.5, 0.5, "\u2588", color=(0.2, 0.4, 0.6), antialiased=False)
    write_gif(figure, [patch], lambda k: patch.set_x(0.2 if k < 2 else 0.6), 5, tmp_path / "x.gif", 40)
    found = list(frames(tmp_path / "x.gif"))
    assert [duration for _, duration in found] == [80, 120]
    assert {tuple(x) for picture, _ in found for x in picture.reshape(-1, 3)} == {(255, 255, 255), (51, 102, 153)}
    write_gif(figure, [patch], lambda k: None, 1, tmp_path / "one.gif", 40)
    with Image.open(tmp_path / "one.gif") as image:
        assert image.size == (80, 60)


def test_a_failure_leaves_the_file_that_was_there(tmp_path):
    (tmp_path / "x.gif").write_bytes(b"before")
    figure, moving, show = figure_with_a_line()

    def fails(k):
        show(k)
        if k == 3:
            raise RuntimeError("no picture")

    with pytest.raises(RuntimeError, match="no picture"):
        write_gif(figure, moving, fails, 5, tmp_path / "x.gif", 40)
    assert [x.name for x in tmp_path.iterdir()] == ["x.gif"]
    assert (tmp_path / "x.gif").read_bytes() == b"before"
