"""What studies of waiting times measure: cases that run with this package or with an earlier checkout of it.

A case is a generator of a module here. It yields a part as soon as it is measured, {"part", "value", "unit", "cpu",
"told"}, less is better. This folder is loaded by itself, with whatever oc_dyn the process has: so its modules import
each other relatively, the package as `oc_dyn`, and use names that earlier releases have, too.
"""

import time

BEGAN = time.perf_counter()  # of the process, before it imports anything that is measured
