"""Functions as C: sources to take along, compiled Functions, calls on numpy arrays, and batches of calls."""

from .batch import batch
from .compiled import compile
from .numpy_call import numpy_call
from .split import split
from .write import codegen

__all__ = ["batch", "codegen", "compile", "numpy_call", "split"]
