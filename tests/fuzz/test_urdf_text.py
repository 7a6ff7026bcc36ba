"""URDF texts that were damaged at random, and hostile ones: a robot or one clear error, soon and in little memory."""

import os
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from budget import examples
from effort import counting
from hypothesis import given
from hypothesis import strategies as st

import oc_dyn as od
import oc_dyn.model.urdf  # so that what it imports counts for no text
from oc_dyn.errors import ModelError, ModelWarning

CASES = [p.read_bytes() for p in sorted((Path(__file__).parents[1] / "data" / "urdf_cases").glob("*.urdf"))]
BITS = [
    b"", b" ", b"<", b">", b"/", b'"', b"'", b"&", b"&amp;", b"&x;", b"<!--", b"-->", b"<![CDATA[", b"<?",
    b"\x00", b"\xff", b"\xef\xbb\xbf", b"\xfe\xff", b"nan", b"-nan", b"inf", b"1e400", b"-1e400", b"1e-400",
    b"1e308", b"0,5", b"1_0", b"0x10", "\u0661".encode(), "\u00e9".encode(), "\U0001f916".encode(), b"0 0",
    b"1 2 3 4", b"${x}", b"$(arg x)", b"xmlns:x='y'", b"<link name='l'/>", b"<joint/>", b"<mimic joint='j'/>",
    b"<!DOCTYPE r [<!ENTITY x 'y'>]>", b"floating", b"planar", b"fixed", b"9" * 5000,
]  # fmt: skip


@st.composite
def texts(draw):
    text = draw(st.sampled_from(CASES))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.sampled_from([0, 0, 1, 3, 10, 100, 1000]))
        kind = draw(st.sampled_from(["bit", "cut", "repeat", "swap", "bytes"]))
        piece = text[at : at + length]
        if kind == "bit":
            piece = draw(st.sampled_from(BITS))
        elif kind == "repeat":
            piece = piece * draw(st.integers(2, 5))
        elif kind == "swap":
            piece = piece[::-1]
        elif kind == "bytes":
            piece = draw(st.binary(max_size=8))
        else:
            piece = b""
        text = text[:at] + piece + text[at + length :]
    return text


@st.composite
def values(draw):
    """A text with the values of some attributes exchanged, so that most are well-formed XML."""
    parts = draw(st.sampled_from(CASES)).split(b'"')
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, (len(parts) - 2) // 2)) * 2 + 1
        other = draw(st.integers(0, (len(parts) - 2) // 2)) * 2 + 1
        odd = st.sampled_from(
            [b.decode("latin-1").translate({60: None, 34: None, 38: None, 0: None}).encode() for b in BITS]
        )
        number = st.floats().map(lambda x: repr(x).encode())
        parts[at] = draw(st.one_of(st.just(parts[other]), odd, number))
    return b'"'.join(parts)


def robot_or_error(text, **options):
    """The robot, or None after an error of ours that says something; anything else fails."""
    with counting() as calls, warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ModelWarning)
        try:
            robot = od.load_urdf(text, **options)
        except ModelError as error:
            robot = None
            assert error.problems
            assert all(error.problems)
            assert len(str(error)) < 1_000_000
    assert calls() < 20_000 + 100 * len(text)
    return robot


def usable(robot):
    """What was read can be printed and is finite."""
    assert np.all(np.isfinite(robot.parameters))
    assert str(robot)
    assert robot.random_configuration(0).shape == (robot.nq,)


@pytest.mark.slow
@examples(400)
@given(texts(), st.booleans(), st.booleans())
def test_damaged_text(text, floating_base, strict):
    robot = robot_or_error(text, floating_base=floating_base, strict=strict)
    if robot:
        usable(robot)


@pytest.mark.slow
@examples(250)
@given(values(), st.booleans())
def test_exchanged_values(text, floating_base):
    robot = robot_or_error(text, floating_base=floating_base)
    if robot:
        usable(robot)


@examples(100)
@given(st.one_of(st.text(), st.binary()), st.booleans())
def test_any_text(text, as_xml):
    if as_xml:
        text = ("<" if isinstance(text, str) else b"<") + text
    elif isinstance(text, str):
        text = text.encode("utf-8", "surrogatepass")
    assert robot_or_error(text) is None


LINKS = '<robot name="r"><link name="a"/><link name="b"/>'
HEAD = LINKS + '<joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
LIMIT = '<limit lower="{0}" upper="{0}" effort="{0}" velocity="{0}"/>'
HOSTILE = {
    "bytes without end": lambda: "<robot>" + "x" * 20_000_000,
    "nested": lambda: "<robot>" + "<link>" * 300_000,
    "attributes": lambda: "<robot " + " ".join(f'a{k}="1"' for k in range(300_000)) + "/>",
    "long name": lambda: f'<robot name="r"><link name="{"n" * 9_000_000}"/><link/></robot>',
    "entities": lambda: '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;">]><robot name="&b;"/>',
    "recursive entity": lambda: '<!DOCTYPE r [<!ENTITY a "&b;"><!ENTITY b "&a;">]><robot name="&a;"/>',
    "external entity": lambda: (
        '<!DOCTYPE r SYSTEM "file:///dev/zero" [<!ENTITY a SYSTEM "file:///dev/zero">]><robot>&a;</robot>'
    ),
    "1e400": lambda: HEAD + LIMIT.format("1e400") + "</joint></robot>",
    "nan": lambda: HEAD + LIMIT.format("nan") + "</joint></robot>",
    "nan origin": lambda: HEAD + '<origin xyz="nan 0 0" rpy="0 inf 0"/></joint></robot>',
    "huge mass": lambda: '<robot name="r"><link name="a"><inertial><mass value="1e400"/></inertial></link></robot>',
    "many digits": lambda: HEAD + f'<origin xyz="{"1" * 400} 0 0"/></joint></robot>',
    "binary": lambda: bytes(range(256)) * 4000,
    "utf-16 that is none": lambda: b"\xff\xfe" + b"<\x00r" * 100_001,
    "too many parts": lambda: '<robot name="r">' + "".join(f'<link name="l{k}"/>' for k in range(60_000)) + "</robot>",
    "a loop of many": lambda: (
        '<robot name="r">'
        + "".join(
            f'<link name="l{k}"/><joint name="j{k}" type="fixed"><parent link="l{k}"/>'
            f'<child link="l{(k + 1) % 4000}"/></joint>'
            for k in range(4000)
        )
        + "</robot>"
    ),
}


@pytest.mark.sample("bytes without end", "huge mass", "binary")
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_text_ends_in_one_error_in_little_memory(kind):
    text = HOSTILE[kind]()
    tracemalloc.start()
    try:
        assert robot_or_error(text) is None
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(text) + 50_000_000


def resident():
    """Bytes of memory that this process has, where the system tells."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if path.exists() else None


@pytest.mark.slow
def test_the_parser_keeps_no_memory():
    if resident() is None:
        pytest.skip("no /proc here")
    texts = [make() for kind, make in HOSTILE.items() if kind in ("nested", "attributes", "too many parts")]
    for text in texts * 2:  # what is kept for good is there now
        robot_or_error(text)
    before = resident()
    for text in texts * 4:
        robot_or_error(text)
    assert resident() - before < 60_000_000
