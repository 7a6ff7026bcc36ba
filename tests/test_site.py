"""The site: it builds without a warning, its code is of the pages that are run elsewhere, and a browser shows it."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import unquote

import browser
import pytest

ROOT = Path(__file__).resolve().parents[1]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None:
        pytest.skip("the extra docs is not installed")
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-q", "-f", "docs/site/mkdocs.yml", "-d", str(out)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=quiet, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return out


class Places(HTMLParser):
    """ids, and what is linked or shown."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.targets = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        self.ids |= {of[key] for key in ("id", "name") if of.get(key)}
        self.targets += [of[key] for key in ("href", "src") if of.get(key)]


def test_everything_linked_is_there_and_nothing_is_fetched(site):
    pages = {path: Places(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}
    assert len(pages) > 50
    assert {"api.html", "gallery.html", "quantities.html"} <= {path.name for path in pages}
    wrong = []
    for path, page in pages.items():
        for target in page.targets:
            place, _, anchor = unquote(target).partition("#")
            if re.match(r"[a-z]+:", place) or place.startswith("//"):
                continue
            file = (path.parent / place).resolve() if place else path
            if not file.is_file() or (anchor and file.suffix == ".html" and anchor not in pages[file].ids | {"__top"}):
                wrong.append(f"{path.relative_to(site)}: {target}")
    assert wrong == []
    scripts = [t for page in pages.values() for t in page.targets if re.match(r"https?:.*\.(js|css|woff2?)", t)]
    assert scripts == []


class Text(HTMLParser):
    """What a page says, without its tags."""

    def __init__(self, text):
        super().__init__()
        self.parts = []
        self.feed(text)

    def handle_data(self, data):
        self.parts.append(data)


def text_of(path):
    return "".join(Text(path.read_text(encoding="utf-8")).parts)


def test_scripts_are_shown_as_they_are(site):
    for script in sorted((ROOT / "problems").glob("*.py")):  # f["clear"](q) is no link
        shown = text_of(site / "problems" / f"{script.stem}.html")
        missing = [x for x in script.read_text(encoding="utf-8").splitlines() if x not in shown]
        assert missing == [], script.name


def test_tutorials_show_what_their_code_prints_and_draws(site):
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        html = (site / "tutorials" / f"{page.stem}.html").read_text(encoding="utf-8")
        assert ">output</span>" in html
        pictures = set(re.findall(r'<img[^>]*src="([^"]+\.png)"', html))
        assert all(x.startswith(page.stem) for x in pictures)
        assert bool(pictures) == (page.stem != "own-method")


def test_formulas_are_drawn_by_the_browser(site):
    for page in ("kumar-mueller-2021", "ali-2026", "garofalo-2013", "singh-2023", "kim-2012"):
        html = (site / "theory" / f"{page}.html").read_text(encoding="utf-8")
        assert html.count('<math display="block">') >= 2
        assert "begin{" not in html


WALK = """<!doctype html><pre id="told"></pre><iframe id="page" width="1200" height="800"></iframe><script>
const pages = PAGES, told = document.getElementById("told"), frame = document.getElementById("page");
let next = 0;
frame.onload = () => {
  const shown = frame.contentDocument;
  if (shown && next > 0) told.textContent += pages[next - 1] + " " + shown.querySelectorAll("h1").length + "\\n";
  if (next < pages.length) frame.src = pages[next++]; else document.body.id = "done";
};
frame.src = "about:blank";
</script>"""


@pytest.fixture
def served(site):
    """(address, pages) of the site, from a server on this machine, with a page that opens all others in turn."""
    files = (path for path in site.rglob("*.html") if path.name != "404.html")
    pages = sorted(str(path.relative_to(site)) for path in files)
    (site / "walk.html").write_text(WALK.replace("PAGES", json.dumps(pages)), encoding="utf-8")

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", pages
    server.shutdown()
    server.server_close()
    (site / "walk.html").unlink()


@pytest.mark.skipif(browser.found() is None, reason="no Chromium")
def test_browser_opens_every_page_without_an_error(served, tmp_path):
    address, pages = served
    with browser.Browser(tmp_path) as chromium:
        chromium.open(f"{address}/walk.html", whole=False)  # which it is not before the last page is
        chromium.until('document.body.id === "done"', 500)
        shown = chromium.value('document.getElementById("told").textContent').split()
    assert shown[::2] == pages
    assert set(shown[1::2]) == {"1"}  # a title each
    assert chromium.complaints == []
