"""XML from a file or a text, whatever its encoding, without trusting it: bounded, no entities, no network."""

import errno
import os
import re
import stat
from pathlib import Path

from lxml import etree

from ..errors import ModelError

MAX_BYTES = 10_000_000  # robot descriptions are far below; meshes are not read
_BOMS = (  # longest first: the mark of UTF-32 begins with that of UTF-16
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
_DECLARATION = re.compile(rb"""\A<\?xml\s(?:[^>]{0,80}?encoding\s*=\s*["']([\w.-]{1,40})["'])?[^>]{0,80}\?>""")
_BLANK = " \t\r\n\ufeff"


def read_xml(path_or_xml, kind="URDF"):
    """(source, stem, root, offset): its name for messages, a name for the robot, the root element, and how many
    lines come before the first one the parser saw.

    path_or_xml: path (str, Path) or XML (str, bytes); a str whose first character is "<" is XML. kind: of
    description, for messages.
    Raises FileNotFoundError; ModelError for a directory, an empty file and what is not well-formed or not safe.
    """
    source, stem, data = _load(path_or_xml, kind)
    for mark, name in _BOMS:
        if isinstance(data, bytes) and data.startswith(mark):
            data = _decode(data, name, source)
    if isinstance(data, bytes):
        body = data.lstrip(b" \t\r\n").removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
        before = data[: len(data) - len(body)].count(b"\n")
        body = _declared(body)
    else:
        body = data.lstrip(_BLANK)
        before = data[: len(data) - len(body)].count("\n")
        body = _undeclared(_encode(body, source))
    if not body:
        raise ModelError(source, [f"is empty; a {kind} file holds a <{'sdf' if kind == 'SDF' else 'robot'}> element"])
    return source, stem, _parse(source, body, before), before


def is_xml(text):
    """Whether a str is XML rather than a path."""
    return text.lstrip(_BLANK).startswith("<")


def folder_of(given):
    """Absolute path of the folder of a file that read_xml reads; None of XML itself."""
    if isinstance(given, (bytes, bytearray)) or (isinstance(given, str) and is_xml(given)):
        return None
    return os.path.dirname(os.path.abspath(given))


def _load(given, kind):
    """(source, stem, bytes or str) of what the user gave."""
    if isinstance(given, (bytes, bytearray)):
        source, stem, data = f"{kind} text", "robot", bytes(given)
    elif isinstance(given, str) and (is_xml(given) or not given.strip(_BLANK)):
        source, stem, data = f"{kind} text", "robot", given
    elif isinstance(given, (str, os.PathLike)):
        source, stem = str(given), Path(given).stem or "robot"
        data = _load_file(given, kind)
    else:
        what = "load_urdf" if kind == "URDF" else kind
        raise TypeError(f"{what}: got a {type(given).__name__}, expected a path (str, Path) or XML (str, bytes)")
    if len(data) > MAX_BYTES:
        raise ModelError(source, [f"is larger than {MAX_BYTES // 10**6} MB; this is no robot description"])
    return source, stem, data


def _load_file(path, kind):
    try:
        found = os.stat(path).st_mode
        if not stat.S_ISREG(found) and not stat.S_ISDIR(found):  # a pipe or a device may have no end
            raise ModelError(path, ["is no regular file"])
        with open(path, "rb") as file:
            return file.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise ModelError(path, [f"is a directory; give the {kind} file in it"]) from None
    except ModelError:
        raise
    except (OSError, ValueError) as error:
        if os.path.isdir(path):  # some systems call it a denied permission
            raise ModelError(path, [f"is a directory; give the {kind} file in it"]) from None
        # a name that cannot be one (too long, with a NUL) is a file that is not there
        impossible = isinstance(error, ValueError) or error.errno in (errno.ENAMETOOLONG, errno.EINVAL)
        if not impossible and not isinstance(error, FileNotFoundError):
            raise
        shown = os.fspath(path)
        shown = shown if len(shown) <= 200 else shown[:200] + "..."
        raise FileNotFoundError(errno.ENOENT, 'no such file, and not XML (which begins with "<")', shown) from None


def _decode(data, encoding, source):
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ModelError(source, [f"begins with the mark of {encoding}, but is not: {error.reason}"]) from None


def _encode(text, source):
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        text = f"holds the character {text[error.start]!r}, which no XML can; read the file as bytes"
        raise ModelError(source, [text]) from None


def _parse(source, body, before):
    parser = _parser()
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        faults = [x for x in parser.error_log if x.domain != etree.ErrorDomains.NAMESPACE and x.level_name != "WARNING"]
        line, text = (faults[0].line, faults[0].message) if faults else (error.lineno, error.msg)
        again = _known_to_python(body) if "ncoding" in text else None
        if again:
            return _parse(source, again, before)
        if faults or not parser.error_log:
            raise ModelError(source, [_syntax_problem(line, text, before)]) from None
        # prefixes nobody declared stand in many files, and the elements that carry them are dropped anyway
        root = etree.fromstring(body, _parser(recover=True))
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and any(True for _ in declared.iterentities()):
        raise ModelError(source, ["declares XML entities, which are not read; write the text they stand for"])
    return root


def _parser(recover=False):
    return etree.XMLParser(
        recover=recover, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False,
        remove_comments=True, remove_pis=True,
    )  # fmt: skip


def _declared(body):
    """Bytes whose XML declaration keeps the encoding alone: files give versions that do not exist. Lines are kept."""

    def plain(found):
        encoding = b' encoding="' + found[1] + b'"' if found[1] else b""
        return b'<?xml version="1.0"' + encoding + b"\n" * found[0].count(b"\n") + b"?>"

    return _DECLARATION.sub(plain, body, count=1)


def _undeclared(body):
    """UTF-8 bytes without the XML declaration, whose encoding is that of other bytes; lines are kept."""
    return _DECLARATION.sub(lambda found: b"\n" * found[0].count(b"\n"), body, count=1)


def _known_to_python(body):
    """UTF-8 bytes of a document whose declared encoding Python knows and the parser does not; else None."""
    found = _DECLARATION.match(body)
    name = (found[1] or b"").decode("ascii").lower() if found else ""
    if not name.startswith(("latin", "iso", "cp", "windows")):  # not all of Python's codecs are quick
        return None
    try:
        return _undeclared(body.decode(name).encode("utf-8"))
    except (LookupError, UnicodeError):
        return None


def _syntax_problem(line, text, before):
    line = (line or 1) + before
    text = (text or "unknown error").partition(", line ")[0].strip()
    if text.startswith(("Document is empty", "Start tag expected")):
        return f"line {line}: is not XML ({text})"
    hint = ""
    if "ncoding" in text or "UTF-8" in text:
        hint = "; save the file as UTF-8 or name its encoding in the first line"
    return f"line {line}: is not well-formed XML: {text}{hint}"
