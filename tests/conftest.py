"""Of a test marked sample(k), k of its cases are in the default run, spread evenly over them; the others are slow."""

from itertools import groupby

import pytest


def pytest_collection_modifyitems(items):
    marked = (item for item in items if item.get_closest_marker("sample"))
    for _, cases in groupby(marked, key=lambda item: item.nodeid.partition("[")[0]):
        cases = list(cases)
        kept = cases[0].get_closest_marker("sample").args[0]
        chosen = {round(k * (len(cases) - 1) / max(kept - 1, 1)) for k in range(min(kept, len(cases)))}
        for k, item in enumerate(cases):
            if k not in chosen:
                item.add_marker(pytest.mark.slow)
