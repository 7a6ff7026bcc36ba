"""The version of oc_dyn, where anything may read it."""

__version__ = "0.1.0"
