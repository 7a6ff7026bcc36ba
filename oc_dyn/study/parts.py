"""A part of a study alone: what the tables have of the rest stays."""

import csv

from ..runs.points import named
from . import apart


def chosen(every, only):
    """Those of points, {key: value} each, whose values contain one of the texts `only`, see apart.chosen_of."""
    return apart.chosen_of(every, only, named)


def others(table, part, every):
    """Rows that the file of a StoredTable had before this run, of points of `every` that are not of the `part`.

    part, every: lists of {key: value}, the keys some of the table's.
    """
    names = list(every[0])
    left = {_key(names, x) for x in every} - {_key(names, x) for x in part}
    return [row for row in table.before if _key(names, row) in left]


def close(table, rows, plan):
    """Write a table with such rows besides those that were added, in the order of a plan of all."""
    keys = {_key(table.keys, row) for row in rows} & {_key(table.keys, keys) for keys in plan}
    table.keep(lambda row: _key(table.keys, row) in keys)
    table.close(plan)


def read_rows(path):
    """Rows of a table of a study, [] where it is not there."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _key(names, row):
    return tuple(str(row[k]) for k in names)
