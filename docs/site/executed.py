"""Pages whose code runs when the site is built: what blocks print, and the pictures they write, stand below them.

    python docs/site/executed.py PAGE FOLDER      runs the blocks of a page in a folder, and writes told.json there

Blocks are ```python, one after the other; one titled with a file's name, title="crane.py", is written to that file.
What ran is kept under build/pages until the page or the package changes.
"""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r'^```python(?: title="([^"]*)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
PICTURES = (".png", ".gif")
LONGEST = 40  # lines that are shown of what a block prints
SECONDS = 240  # that a page may take


def run_blocks(text, page, only=lambda title: True, each=lambda block, names: None):
    """(how many blocks ran, the names that they leave) of a page, run in the working folder.

    only: which titles (None for none) run. each: called with (match of BLOCK, names) after a block."""
    names, count = {"__name__": "docs"}, 0
    for block in BLOCK.finditer(text):
        title, code = block.groups()
        if title and title.endswith(".py"):
            Path(title).write_text(code, encoding="utf-8")
        elif only(title):
            line = text[: block.start(2)].count("\n")
            exec(compile("\n" * line + code, page, "exec"), names)  # so that a failure names the line
        else:
            continue
        count += 1
        each(block, names)
    return count, names


def told(page, folder):
    """Run a page in a folder; the list of (end of the block, what it printed, pictures that it wrote) in told.json."""
    text, rows, said, seen = Path(page).read_text(encoding="utf-8"), [], io.StringIO(), set()
    os.chdir(folder)

    def each(block, _):
        new = [p.name for p in sorted(Path().iterdir()) if p.suffix in PICTURES and p.name not in seen]
        seen.update(new)
        rows.append((block.end(), said.getvalue(), new))
        said.seek(0)
        said.truncate()

    with contextlib.redirect_stdout(said):
        run_blocks(text, Path(page).name, each=each)
    Path("told.json").write_text(json.dumps(rows), encoding="utf-8")


def executed(page):
    """(text of a page with what its blocks printed and drew, [paths of pictures]); raises RuntimeError if one fails."""
    text = page.read_text(encoding="utf-8")
    folder = ROOT / "build" / "pages" / f"{page.stem}-{_digest(text)}"
    if not (folder / "told.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": path}
        command = [sys.executable, "-W", "ignore", __file__, str(page), str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=SECONDS)
        if done.returncode:
            raise RuntimeError(f"{page.name}: a block fails\n{done.stderr[-2000:]}")
    rows = json.loads((folder / "told.json").read_text(encoding="utf-8"))
    pictures = [folder / name for _, _, names in rows for name in names]
    for end, printed, names in reversed(rows):
        text = text[:end] + _shown(page.stem, printed, names) + text[end:]
    return text, pictures


def _shown(page, printed, pictures):
    lines = printed.rstrip().splitlines()
    if len(lines) > LONGEST:
        lines = [*lines[:LONGEST], "..."]
    output = ["", "", '```text title="output"', *lines, "```"] if lines else []
    return "\n".join([*output, *(f"\n\n![{Path(name).stem}]({page}-{name})" for name in pictures)])


def _digest(text):
    """Of a page, this file and the package."""
    found = hashlib.sha256(text.encode())
    for path in (Path(__file__), *sorted((ROOT / "oc_dyn").rglob("*.py"))):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


if __name__ == "__main__":
    try:
        told(Path(sys.argv[1]).resolve(), sys.argv[2])
    except BaseException:
        traceback.print_exc()
        sys.exit(1)
