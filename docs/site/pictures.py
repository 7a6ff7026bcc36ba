"""Pictures of the site and of the viewer, as Chromium shows them.

    python docs/site/pictures.py --out results/docs

Each page on a desk and on a phone; the pictures have 256 colours at most, which keeps them small. Needs the extra
`docs` and Chromium.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from browser import Browser, found  # beside this file
from PIL import Image

import oc_dyn as od
from oc_dyn.demo import plan
from oc_dyn.planning.point_to_point import plan_point_to_point
from oc_dyn.runs.manifest import manifest, write_json

ROOT = Path(__file__).resolve().parents[2]
DESK, PHONE = (1280, 800, False), (390, 844, True)  # width, height [px], whether it is a phone
PAGES = {
    "home": "index.html",
    "tour": "tour.html",
    "tutorial": "tutorials/mpc-to-c.html",
    "gallery": "gallery.html",
    "theory": "theory/kumar-mueller-2021.html",
    "reference": "api.html",
}
SEEK = "const t = document.getElementById('time'); t.value = {}; t.dispatchEvent(new Event('input'))"


def main():
    """Write all pictures, and what made them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "quick" / "docs", help="folder of the pictures")
    parser.add_argument("--site", type=Path, help="a site that is built already, by mkdocs build -d FOLDER")
    out, site = (vars(parser.parse_args())[key] for key in ("out", "site"))
    if found() is None:
        parser.error("there is no Chromium on the PATH")
    taken = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        shown = {**_site(folder, site), **_viewer(folder)}
        for place, (width, height, phone) in (("desk", DESK), ("phone", PHONE)):
            with _served(folder) as address, Browser(folder / place, width, height, phone) as browser:
                for name, (page, ready) in shown.items():
                    browser.open(f"{address}/{page}")
                    browser.until(ready)
                    taken[f"{name}_{place}.png"] = {"page": page, "width": width, "height": height}
                    _take(browser, out / f"{name}_{place}.png")
                version, complaints = browser.version(), browser.complaints
            if complaints:
                raise SystemExit("\n".join(["the browser complains:", *complaints]))
    for name, facts in taken.items():
        facts["bytes"] = (out / name).stat().st_size
    command = ["python", "docs/site/pictures.py", *sys.argv[1:]]
    write_json(out / "manifest.json", manifest(command, browser=version, pictures=taken))
    print(f"{len(taken)} pictures in {out}, {sum(x['bytes'] for x in taken.values()) / 1e6:.2f} MB")


def _site(folder, built):
    """{name: (page, when it is ready)} of the site, built there, or linked to where it is."""
    loaded = "[...document.images].every((x) => x.complete || x.loading === 'lazy')"
    pages = {name: (f"site/{page}", loaded) for name, page in PAGES.items()}
    if built is not None:
        (folder / "site").symlink_to(built.resolve())
        return pages
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", "docs/site/mkdocs.yml"]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run([*command, "-d", str(folder / "site")], cwd=ROOT, check=True, env=quiet)
    return pages


def _viewer(folder):
    """{name: (page, when it is ready)} of od.view: two motions with limits, a shelf, meshes of a robot's files."""
    fast = plan()
    panda = fast.robot
    calm = plan_point_to_point(panda, fast.q[0], fast.q[-1], continuity=3, nodes=20, scale={"v": 0.5})
    od.view(panda, {"fast": fast, "calm": calm}, path=folder / "viewer.html", title="Two motions of the Panda")
    scene = od.Scene.of(panda).join(od.scene.example("shelf"))
    od.view(panda, fast, scene=scene, path=folder / "shelf.html", title="The Panda at a shelf")
    fast.report(folder / "report.html")
    times = {"viewer": 0.6 * fast.duration, "shelf": 0.4 * fast.duration}
    try:
        arm = od.load("ur5_robot")
    except (od.ModelError, od.UnknownName):  # the extra `names` is not installed
        pass
    else:
        q = [0.4, -1.1, 1.5, -0.6, 1.2, 0.0]
        od.view(arm, ([0, 1], [arm.neutral(), q]), path=folder / "meshes.html", title="Meshes of a UR5")
        times["meshes"] = 1.0
    ready = "(() => {{ {}; return Number(document.body.dataset.frames) > 3; }})()"
    pages = {name: (f"{name}.html", ready.format(SEEK.format(t))) for name, t in times.items()}
    return {**pages, "report": ("report.html", "document.readyState === 'complete'")}


def _take(browser, path):
    """A picture of few colours."""
    browser.picture(path)
    with Image.open(path) as picture:
        few = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    few.save(path, optimize=True)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def _served(folder):
    """The address of a folder, from a server on this computer."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
