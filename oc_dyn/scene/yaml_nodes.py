"""YAML read without trusting it: nodes that know their lines, without aliases, tags, deep nesting or doubled keys."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection
from typing import Any

import yaml

from ..errors import FileError
from ..files import read_text
from ..numbers import HUGE
from ..types import StrPath

MAX_BYTES = 10_000_000
_DEEPEST = 8
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_PLAIN = {f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "float", "bool", "null", "map", "seq", "timestamp")}
_PLAIN |= {"tag:yaml.org,2002:merge", "tag:yaml.org,2002:value"}  # "<<" and "=" are texts like others here
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the second is of Python alone, and slow


def compose(path: StrPath) -> tuple[str, Any]:
    """(source, root node) of a YAML file; None as the node of an empty one. Raises FileError with the line."""
    source, text = str(path), read_text(path, MAX_BYTES)
    try:
        depth = documents = 0
        for event in yaml.parse(text, Loader=_LOADER):
            line = event.start_mark.line + 1
            if isinstance(event, yaml.AliasEvent):
                raise FileError(source, [f"line {line}: *{event.anchor} is an alias; write out what it stands for"])
            tag = getattr(event, "tag", None)
            if tag and tag not in _PLAIN and tag != "!":
                raise FileError(source, [f"line {line}: got the tag {tag[:60]}, which no value has here; leave it out"])
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
            depth += isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent))
            depth -= isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent))
            if depth > _DEEPEST:
                raise FileError(source, [f"line {line}: nested too deeply"])
            if documents > 1:
                raise FileError(source, [f"line {line}: a second document; one is read"])
        return source, yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark is not None else ""
        raise FileError(source, [f"{where}not YAML: {error.problem or error.context}"]) from None
    except yaml.YAMLError as error:  # characters that YAML does not have
        raise FileError(source, [f"not YAML: {' '.join(str(error).split())}"]) from None


class Reader:
    """Values of nodes; whatever is wrong is kept in `problems` with line and key, and reading goes on."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def wrong(self, node: Any, key: str, text: str) -> None:
        """Keep what is wrong with the value of a key."""
        self.problems.append(f"line {node.start_mark.line + 1}, {key}: {text}")

    def mapping(self, node: Any, key: str, known: Collection[str] | None = None) -> dict[str, Any]:
        """{key: node} of a mapping; unknown keys are wrong where the known ones are given."""
        if not isinstance(node, yaml.MappingNode):
            self.wrong(node, key, f"got {_shown(node)}, expected keys and values")
            return {}
        out: dict[str, Any] = {}
        for name, value in node.value:
            text = name.value if isinstance(name, yaml.ScalarNode) else None
            if text is None or name.tag not in _PLAIN:
                self.wrong(name, key, f"got {_shown(name)} as a key, expected a name")
            elif text in out:
                self.wrong(name, key, f"{text!r} is there twice; which one counts cannot be known")
            elif known is not None and text not in known:
                near = difflib.get_close_matches(text, known, n=1)
                hint = f"did you mean {near[0]}? " if near else ""
                self.wrong(name, key, f"there is no key {text[:60]!r}; {hint}known: {', '.join(known)}")
            else:
                out[text] = value
        return out

    def sequence(self, node: Any, key: str, expected: str) -> list[Any]:
        """Nodes of a sequence; what is expected, for messages."""
        if isinstance(node, yaml.SequenceNode):
            return list(node.value)
        self.wrong(node, key, f"got {_shown(node)}, expected {expected}")
        return []

    def text(self, node: Any, key: str, expected: str = "a name") -> str | None:
        """Text of a scalar, None where it is none."""
        if isinstance(node, yaml.ScalarNode) and node.tag in _PLAIN and node.value:
            return str(node.value)
        self.wrong(node, key, f"got {_shown(node)}, expected {expected}")
        return None

    def number(self, node: Any, key: str, expected: str = "a finite number") -> float | None:
        """A finite number, None where it is none."""
        plain = isinstance(node, yaml.ScalarNode) and not node.style and node.tag in _PLAIN  # no quotes
        if plain and len(node.value) < 400 and _NUMBER.fullmatch(node.value):
            value = float(node.value)
            if math.isfinite(value) and abs(value) < HUGE:
                return value
        self.wrong(node, key, f"got {_shown(node)}, expected {expected}")
        return None

    def numbers(self, node: Any, key: str, count: int) -> list[float] | None:
        """So many finite numbers, None where they are not."""
        expected = f"{count} finite numbers, as [{', '.join('xyzw'[:count])}]"
        before = len(self.problems)
        nodes = self.sequence(node, key, expected)
        if len(self.problems) == before and len(nodes) != count:
            self.wrong(node, key, f"got {len(nodes)} values, expected {expected}")
        values = [self.number(x, key) for x in nodes[:100]]
        return [x for x in values if x is not None] if len(self.problems) == before else None


def _shown(node: Any) -> str:
    """What a message says of a node."""
    if isinstance(node, yaml.MappingNode):
        return "keys and values"
    if isinstance(node, yaml.SequenceNode):
        return f"a list of {len(node.value)}"
    if node.tag not in _PLAIN:
        return f"the tag {node.tag[:60]}"
    text = node.value if len(node.value) <= 60 else node.value[:57] + "..."
    return repr(text) if text else "nothing"
