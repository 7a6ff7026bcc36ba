"""Names that nobody should give to a robot, and that somebody will: parts of every language they may end up in."""

import numpy as np

MARK = "OUTSIDE"  # in every name, so that it can be looked for where it must not be
PARTS = (
    "*/", "/*", "//", "\\", "??/", "??", "\n", "\r", "\x00", "\t", '"', "'", "\x1b[31m", "\x1b]0;x\x07", "\x85",
    "\u2028", "\u202e", "\u2066", "\u200b", "\ufeff", "\ud800x", "\udc80", "\U000e0041", "é", "日本", "é", "🤖", "$",
    "$\\frac{$", "$x^2$", "\\$", "^{", "_", "__", "%s%n", "%", "{0}", "{{7*7}}", "{% if %}", "${HOME}",
    "$ENV{HOME}", "=cmd|' /C calc'!A0", "+1+2", "-1-2", "@SUM(1)", "=", "+", "-", "@", "1e5", "-3.5", ",", ";",
    "|", " ", "#", ")", "(", "<script>alert(1)</script>", "</pre>", "<", ">", "&amp;", "&", "]]>", "-->",
    "int evil(void){return 1;}", "#error", "#include <no.h>", "\n#define main evil\n", "*/ int evil; /*",
    "x" * 300,
)  # fmt: skip


def name(rng, most=5):
    """A random name; the rarer the part, the more it is worth, so all have the same chance."""
    parts = [PARTS[k] for k in rng.integers(len(PARTS), size=rng.integers(1, most + 1))]
    parts.insert(int(rng.integers(len(parts) + 1)), MARK)
    return "".join(parts)


def names(rng, count, most=5):
    """So many different ones."""
    out = {}
    while len(out) < count:
        out[name(rng, most)] = True
    return list(out)


def every_name():
    """One name for each part: before, behind and around the mark."""
    return [f"{part}{MARK}{k}{part}" for k, part in enumerate(PARTS)]


def robot(rng, joints=3):
    """A robot of such names in the vertical plane."""
    import oc_dyn as od

    links, moved = names(rng, joints + 1), names(rng, joints)
    b = od.RobotBuilder(name(rng))
    b.add_link(links[0])
    for k, joint in enumerate(moved):
        inertia = np.diag([0.01, 0.02, 0.03])
        place = (0.3 if k else 0.0, 0.0, 0.0)
        b.add_body(
            links[k + 1], "revolute", links[k], joint=joint, mass=1.0, com=(0.1, 0, 0), inertia=inertia,
            axis=(0, 1, 0), xyz=place, lower=-2, upper=2, velocity=2, effort=50,
        )  # fmt: skip
    return b.build()
