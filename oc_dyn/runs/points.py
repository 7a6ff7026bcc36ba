"""Points of a study: rows of a table that can be measured in any order and anywhere."""

import sys
from contextlib import closing

from tqdm import tqdm

from ..executors import completed


def fill(table, plan, measure, executor="serial", bar=None):
    """Rows {key and value: text} of a plan, a list of {key: value}, in its order.

    Known rows are taken as they are; the others are measure(**keys) -> {value: number or text}, by an executor as in
    oc_dyn.executors, and written as they come. measure: a function of a module. Raises the first exception of a point;
    rows done before stay stored.
    """
    table.begin()
    rows, missing = {}, []
    for place, keys in enumerate(plan):
        rows[place] = table.known(**keys)
        if rows[place]:
            table.add(**rows[place])
            _step(bar, keys)
        else:
            missing.append(place)
    tasks = [(measure, plan[place]) for place in missing]
    with closing(completed(measured, tasks, executor, lambda number: named(tasks[number][1]))) as done:
        for number, found, error in done:
            if error is not None:
                raise error
            keys = plan[missing[number]]
            table.add(**keys, **found)
            rows[missing[number]] = {k: str(x) for k, x in {**keys, **found}.items()}
            _step(bar, keys)
    return [rows[place] for place in range(len(plan))]


def measured(measure, keys):
    """measure(**keys), for a point (measure, keys)."""
    return measure(**keys)


def named(keys):
    """What a point is called in messages."""
    return ", ".join(str(x) for x in keys.values())


def _step(bar, keys):
    if bar is not None:
        bar.set_postfix_str(named(keys))
        bar.update()


def bar(progress, total, name="study", unit=" points"):
    """Progress on stderr; progress None: on a terminal only."""
    if progress is None:
        progress = sys.stderr is not None and sys.stderr.isatty()
    return tqdm(total=total, desc=name, unit=unit, file=sys.stderr, disable=not progress)
