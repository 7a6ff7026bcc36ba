"""Pages of the site that are made of other files: README, CHANGELOG, problems, results, the package's docstrings."""

import csv
import importlib
import json
import re
from pathlib import Path

from executed import executed  # beside this file
from formulas import mathml
from mkdocs.structure.files import File

import oc_dyn as od

ROOT = Path(__file__).resolve().parents[2]
PICTURES = (".png", ".gif")
WHOLE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "results/README.md": "studies.md",
    "results/VERDICT.md": "verdicts.md",
}
FOLDERS = {"": "index.md", "results": "studies.md", "problems": "gallery.md"}
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
STYLE = """.doc-contents .highlight code { white-space: pre-wrap; }
.md-typeset table:not([class]) { font-size: 0.66rem; }
.md-typeset .grid.cards img { max-height: 15rem; display: block; margin: auto; }
.md-grid { max-width: 72rem; }
.md-typeset .formula { overflow-x: auto; margin: 1em 0; }
.md-typeset .formula math { font-size: 1.05em;
  font-family: "STIX Two Math", "Cambria Math", "Latin Modern Math", "DejaVu Math TeX Gyre", math; }
"""  # with these fonts brackets and sums grow, which they do not in others
GROUPS = {  # of the page api.md
    "Robots": "load load_urdf load_sdf sdf_springs check_robot Robot RobotBuilder RobotFunction Inertia".split(),
    "Functions": "function methods quantities ports describe table check_derivatives cite".split(),
    "Machine code": "compile numpy_call batch codegen codegen_player fmu ros2_controller".split(),
    "Planning": "plan_point_to_point plan_along_path pose_path inverse_kinematics Limits Trajectory tighten simulate "
    "rollout motion_report animate view".split(),
    "Optimal control": "Problem load_solution ContactMotion contact_points contact_wrenches deadline".split(),
    "Control": "mpc".split(),
    "Scenes": "Scene".split(),
    "Sweeps and scripts": "sweep export_sweep script".split(),
    "Parameters": "base_parameters sensitivity as_tensor".split(),
}


def on_config(config):
    """The gallery's pages stand in the navigation; formulas are drawn."""
    formulas = {"name": "math", "class": "math", "format": mathml}
    config.mdx_configs["pymdownx.superfences"] = {"custom_fences": [formulas]}
    for entry in config.nav:
        if "Gallery" in entry:
            entry["Gallery"] = ["gallery.md", *(f"problems/{name}.md" for name in _problems())]
    return config


def on_files(files, config):
    """Add the pages and pictures that are not under docs/."""
    for source, target in WHOLE.items():
        _add(files, config, target, (ROOT / source).read_text(encoding="utf-8"))
    for name in _problems():
        _add(files, config, f"problems/{name}.md", _problem(name))
    for page in sorted((ROOT / "docs" / "tutorials").glob("*.md")):
        _run(files, config, page)
    _add(files, config, "gallery.md", _gallery())
    _add(files, config, "known-optima.md", _known_optima())
    _add(files, config, "api.md", _api())
    _add(files, config, "assets/site.css", STYLE)
    for path in sorted((ROOT / "results").glob("*/*")):
        if path.suffix in PICTURES and path.parent.name != "docs":  # those are of this site
            target = f"results/{path.parent.name}/{path.name}"
            files.append(File.generated(config, target, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Links to files of the repository lead to pages of the site, or are left out where there is none."""
    parts = FENCE.split(markdown)  # every other one is a block of code, where a[b](c) is no link
    parts[::2] = [LINK.sub(lambda m: _link(m, page.file.src_uri, files), x) for x in parts[::2]]
    return "".join(parts)


def _link(match, page, files):
    mark, text, target = match.groups()
    if target.startswith(("http", "#")):
        return match.group(0)
    place, _, anchor = target.partition("#")
    bases = {"index.md": "", "changelog.md": "", "studies.md": "results", "verdicts.md": "results"}
    base = bases.get(page, f"docs/{page.rpartition('/')[0]}")
    path = _normal(f"{base}/{place}") if not page.startswith(("problems/", "gallery", "known")) else place
    found = _page_of(path, files)
    if found is None:
        return text if not mark else ""
    up = "../" * page.count("/")
    return f"{mark}[{text}]({up}{found}{'#' + anchor if anchor else ''})"


def _normal(path):
    parts = []
    for part in path.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def _page_of(path, files):
    """Place on the site of a file of the repository, None where it has none."""
    whole = {**WHOLE, **FOLDERS}
    if path in whole:
        return whole[path]
    path = path.removeprefix("docs/")
    script = re.fullmatch(r"problems/(\w+)\.py", path)
    if script:
        path = f"problems/{script.group(1)}.md"
    if re.fullmatch(r"problems/known_optima.*|results/suite.*", path):
        path = "known-optima.md"
    return path if files.get_file_from_path(path) else None


def _run(files, config, page):
    """A page with what its code printed and drew, instead of the page as it is."""
    name = f"tutorials/{page.name}"
    text, pictures = executed(page)
    files.remove(files.get_file_from_path(name))
    _add(files, config, name, text)
    for picture in pictures:
        target = f"tutorials/{page.stem}-{picture.name}"
        files.append(File.generated(config, target, abs_src_path=str(picture)))


def _add(files, config, name, text):
    files.append(File.generated(config, name, content=text))


def _problems():
    return sorted(path.stem for path in (ROOT / "problems").glob("*.py"))


def _told(name):
    """(first sentence, text) of a problem's docstring."""
    source = (ROOT / "problems" / f"{name}.py").read_text(encoding="utf-8")
    text = re.match(r'"""(.*?)"""', source, re.DOTALL).group(1).strip()
    return text.split("\n")[0], text, source


def _pictures(name):
    return sorted(p for p in (ROOT / "results" / name).glob("*") if p.suffix in PICTURES)


def _problem(name):
    first, text, source = _told(name)
    lines = [f"# {name.replace('_', ' ')}", "", first, "", "```text", text.partition("\n")[2].strip("\n"), "```", ""]
    lines += [f"![{p.stem.replace('_', ' ')}](results/{name}/{p.name})" for p in _pictures(name)]
    manifest = ROOT / "results" / name / "manifest.json"
    if manifest.exists():
        checks = json.loads(manifest.read_text(encoding="utf-8")).get("checks", {})
        if isinstance(checks, dict) and checks:
            lines += ["", "## Checks", "", "| what | value | asked |", "|---|---|---|"]
            lines += [f"| {_cell(what)} | {_number(row)} | {_bound(row)} |" for what, row in checks.items()]
    lines += ["", "## The script", "", "```python", source.rstrip(), "```", ""]
    return "\n".join(lines)


def _cell(text):
    return str(text).replace("|", "\\|")


def _number(row):
    value = row.get("value", row.get("error", "")) if isinstance(row, dict) else row
    return f"{value:.3g}" if isinstance(value, float) else _cell(value)


def _bound(row):
    words = {"below": "at most", "above": "at least", "equals": "equal to", "bound": "at most"}
    if not isinstance(row, dict):
        return ""
    said = {word: row[key] for key, word in words.items() if key in row}
    return _cell(", ".join(f"{w} {x:.3g}" if isinstance(x, float) else f"{w} {x}" for w, x in said.items()))


def _gallery():
    lines = ["# Gallery", "", "Worked problems, one script each; what each gave is in its page.", ""]
    lines += ['<div class="grid cards" markdown>', ""]
    for name in _problems():
        first, *_ = _told(name)
        pictures = _pictures(name)
        moving = [p for p in pictures if p.suffix == ".gif"] or pictures
        shown = f"![{name}](results/{name}/{moving[0].name})" if moving else ""
        lines += [f"-   **[{name.replace('_', ' ')}](problems/{name}.md)**", "", f"    {first}", "", f"    {shown}", ""]
    return "\n".join([*lines, "</div>", ""])


def _known_optima():
    with open(ROOT / "results" / "suite" / "suite.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    columns = ("name", "known", "computed", "error", "method", "intervals", "iterations", "seconds", "source")
    lines = ["# Known optima", "", "Problems whose optimum is known, solved by `oc-dyn study suite`.", ""]
    lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(_cell(row[c]) for c in columns) + " |" for row in rows]
    return "\n".join([*lines, ""])


def _api():
    lines = ["# Python interface", "", "`import oc_dyn as od`; from the docstrings, with types.", ""]
    for title, names in GROUPS.items():
        lines += [f"## {title}", ""]
        lines += [_entry(od, name) for name in names]
    for module in ("elastic", "scene", "identification", "control", "design", "export"):
        package = importlib.import_module(f"oc_dyn.{module}")
        names = [n for n in getattr(package, "__all__", []) if callable(getattr(package, n))]
        lines += [f"## od.{module}", ""]
        lines += [_entry(package, name) for name in names]
    return "\n".join(lines)


def _entry(package, name):
    """A block for mkdocstrings, with the members of classes that are public."""
    thing = getattr(package, name)
    path = f"{thing.__module__}.{getattr(thing, '__qualname__', name)}"
    options = ["    options:", "      heading_level: 3"]
    if isinstance(thing, type):
        members = vars(thing).items()
        public = [n for n, x in members if n[0] != "_" and (callable(x) or isinstance(x, property))]
        options += [f"      members: [{', '.join(public)}]"] if public else []
    return "\n".join([f"::: {path}", *options, ""])
