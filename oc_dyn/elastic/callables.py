"""Functions that users write, which may fail in their own ways when casadi's symbols go in."""

from __future__ import annotations

# by casadi (NotImplementedError, RuntimeError), and by what is written for numbers or for other vectors
FAILURES = (
    ArithmeticError, AttributeError, LookupError, NotImplementedError, RuntimeError, TypeError, ValueError,
)  # fmt: skip


def failure(error: BaseException) -> str:
    """What went wrong, in a line."""
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
