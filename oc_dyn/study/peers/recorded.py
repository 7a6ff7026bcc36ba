"""Instructions that other packages take, as they were recorded once, and what is aimed at beside them."""

import csv
from pathlib import Path

ROBOTS = ("panda", "ur5", "hyq", "talos")
TARGETS = {  # {(quantity, order): instructions on each of ROBOTS}
    ("inverse_dynamics", 0): (783, 430, 1700, 4300),
    ("inverse_dynamics", 5): (8461, 5200, 21000, 52000),
    ("forward_dynamics", 0): (1650, 820, 4100, 10500),
    ("forward_dynamics", 4): (9500, 5500, 25000, 62000),
    ("mass_matrix", 0): (600, 280, 1350, 5000),
    ("inverse_dynamics_partials", 0): (5000, 1900, 12500, 38000),
    ("forward_dynamics_partials", 0): (7700, 4400, 28000, 130000),
    ("inverse_dynamics_second_partials", 0): (21500, 12600, 70000, 430000),
    ("inverse_dynamics_lagrangian_hessian", 0): (10500, 4500, 18000, 120000),
}
RATIOS = {  # time over that of Pinocchio's own routine, at most: {(robot, quantity): ratio}
    ("panda", "inverse_dynamics"): 0.20,
    ("talos", "inverse_dynamics"): 0.25,
    ("panda", "forward_dynamics"): 0.18,
    ("talos", "forward_dynamics"): 0.30,
    ("panda", "inverse_dynamics_partials"): 0.30,
    ("talos", "inverse_dynamics_partials"): 0.55,
    ("panda", "inverse_dynamics_second_partials"): 0.40,
    ("talos", "inverse_dynamics_second_partials"): 1.0,
}


def target(quantity, order, robot):
    """Instructions that ours should not exceed."""
    return TARGETS[quantity, order][ROBOTS.index(robot)]


def recorded():
    """Rows {"quantity", "order", "peer", "form", robot: instructions or None} of recorded.csv; `order` is a number.

    How they were taken stands at the head of the file.
    """
    with open(Path(__file__).with_name("recorded.csv"), newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    numbers = {name: lambda text: int(text) if text else None for name in ROBOTS} | {"order": int}
    return [{key: numbers.get(key, str)(text) for key, text in row.items()} for row in rows]
