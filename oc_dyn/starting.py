"""Ctrl-C while the command oc-dyn starts: most of its first second is the import of this package."""

import os
import signal
import sys
import threading


def _is_command():
    """Whether this process is the command: its script, or python -m oc_dyn.cli."""
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    return name.removesuffix(".exe") == "oc-dyn" or (name == "-m" and "oc_dyn.cli" in sys.orig_argv)


def _stop(*_):
    os.write(2, b"oc-dyn: stopped\n")
    os._exit(130)  # an exception would be taken for an error of the module that is being imported


_IN_MAIN_THREAD = threading.current_thread() is threading.main_thread()
if _is_command() and _IN_MAIN_THREAD and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, _stop)
