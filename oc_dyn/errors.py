"""Exceptions raised by oc_dyn; each message says where, what was got, what was expected, and what to do."""

import difflib


class ModelError(ValueError):
    """A robot description is wrong; lists every problem found, one a line, and keeps them in `problems`."""

    def __init__(self, source, problems):
        self.source = str(source)
        self.problems = tuple(problems)
        super().__init__(source, problems)

    def __str__(self):
        if len(self.problems) == 1:
            return f"{self.source}: {self.problems[0]}"
        lines = "\n".join(f"  - {p}" for p in self.problems)
        return f"{self.source}: {len(self.problems)} problems\n{lines}"


class ModelWarning(UserWarning):
    """A robot description is usable but says less than it should; see the message for what was assumed."""


class ShapeError(ValueError):
    """An argument has the wrong shape or a port is unknown."""


class OrderError(ValueError):
    """A method cannot do the order or the robot asked for."""


class UnknownName(KeyError, ValueError):
    """A name (quantity, method, joint, frame, port) is not known; the message lists near ones."""

    def __init__(self, what, name, known):
        known = [str(k) for k in known]
        near = difflib.get_close_matches(str(name), known, n=3)
        hint = f"did you mean {', '.join(map(repr, near))}? " if near else ""
        shown = ", ".join(known[:40]) + (", ..." if len(known) > 40 else "")
        self.message = f"no {what} {name!r}; {hint}available: {shown or 'none'}"
        super().__init__(self.message)

    def __str__(self):
        return self.message


class LimitError(ValueError):
    """A motion is impossible within the limits, found before solving; the message names joint and limit."""


class SolveError(RuntimeError):
    """The solver failed; `status`, `violations` (worst first) and the last iterate are kept: `solution` of a Problem,
    `trajectory` of a planner. A limit of time that has passed is the status "time_limit"."""

    def __init__(self, message, status=None, violations=(), trajectory=None, solution=None):
        super().__init__(message)
        self.status = status
        self.violations = tuple(violations)
        self.trajectory = trajectory
        self.solution = solution


ALL = (LimitError, ModelError, OrderError, ShapeError, SolveError, UnknownName)  # what is refused, as one except clause
