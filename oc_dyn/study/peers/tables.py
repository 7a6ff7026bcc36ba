"""The tables of the study as a text."""

SAME = 1e-9  # relative; files round angles, which the canonical form takes as exact


def report(counts, ratios, beside, sizes, notes):
    """Instructions, times, sizes, and what was left out."""
    lines = [*_instructions(counts)]
    if ratios:
        lines += ["", *_times(ratios)]
    if beside:
        lines += ["", *_beside(beside)]
    if sizes:
        lines += ["", *_code(sizes)]
    return "\n".join([*lines, *(["", *notes] if notes else [])])


def _instructions(counts):
    lines = [
        "Instructions: ours, target, by ad_taylor, shortest form of each peer (* counted in this run, else as recorded)"
    ]
    peers = [name.removesuffix("_source") for name in (counts[0] if counts else ()) if name.endswith("_source")]
    lines.append(
        f"{'':8}{'quantity':38}{'ours':>8}{'target':>8}{'by AD':>8}" + "".join(f"{peer:>13}" for peer in peers)
    )
    for row in counts:
        cells = [str(row[peer] or "-") + (" *"[row[f"{peer}_source"] == "this run"]) for peer in peers]
        line = f"{row['robot']:8}{_name(row):38}{row['instructions']:8}{row['target']:8}{row['ad_taylor'] or '-':>8}"
        missed = "  missed" if row["instructions"] > row["target"] else ""
        lines.append((line + "".join(f"{cell:>13}" for cell in cells) + missed).rstrip())
    return lines


def _name(row):
    return row["quantity"] + (f", orders 0..{int(row['order'])}" if row["order"] else "")


def _times(ratios):
    lines = ["Time of the generated C over that of Pinocchio's routine, medians of ratios in alternating runs"]
    head = (
        f"{'':10}{'quantity':36}{'method':9}{'us':>8}{'routine':>9}{'ratio':>7}{'target':>8}{'off by':>9}{'cc [s]':>8}"
    )
    lines.append(head)
    for row in ratios:
        goal = f"{row['target']:8.2f}" if row["target"] else f"{'':8}"
        line = f"{row['robot']:10}{row['quantity']:36}{row['method']:9}{row['microseconds']:8.3g}"
        line += f"{row['routine_microseconds']:9.3g}{row['ratio']:7.3f}{goal}{row['error']:9.0e}{row['seconds']:8.1f}"
        marks = ["missed"] * bool(row["target"] and row["ratio"] > row["target"])
        lines.append("  ".join([line, *marks, *["differs"] * (not row["error"] < SAME)]))
    return [*lines, *_called(ratios)]


def _beside(rows):
    lines = [
        "Time of the generated C over that of MuJoCo, both called from C++ and not compiled for this machine alone:",
        "the steps that the result needs, or the function of its interface, which does more; from Python: a call of it",
        "through the binding",
        f"{'':10}{'quantity':20}{'MuJoCo calls':14}{'us':>8}{'MuJoCo':>9}{'from Python':>13}{'ratio':>7}{'off by':>9}",
    ]
    for row in rows:
        called = row["called"] if row["routine"] == "interface" else "its steps"
        python = f"{row['python_microseconds']:13.3g}" if row["python_microseconds"] else f"{'':13}"
        line = f"{row['robot']:10}{row['quantity']:20}{called:14}{row['microseconds']:8.3g}"
        line += f"{row['mujoco_microseconds']:9.3g}{python}{row['ratio']:7.3f}{row['error']:9.0e}"
        lines.append("  ".join([line, *["differs"] * (not row["error"] < SAME)]))
    return lines


def _called(ratios):
    """What a program that calls its steps costs beside one that is written out."""
    out = []
    for row in ratios:
        key = row["robot"], row["quantity"]
        whole = next((x for x in ratios if (x["robot"], x["quantity"]) == key and x["method"] == "default"), None)
        if row["method"] == "default" or whole is None:
            continue
        time, size, seconds = (row[k] / whole[k] for k in ("microseconds", "bytes", "seconds"))
        costs = (
            f"{time:.2f} of the time, {size:.2f} of the C code ({row['bytes'] / 1e3:.0f} kB), {seconds:.2f} to compile"
        )
        out.append(f"{key[0]:10}{key[1]}, {row['method']} over written out: {costs}")
    return ["", *out] if out else []


def _code(sizes):
    lines = ["Generated C of the full set, each Function compiled alone"]
    lines.append(f"{'':8}{'quantity':38}{'instructions':>13}{'C [kB]':>9}{'cc [s]':>8}{'library [kB]':>14}")
    for name in dict.fromkeys(row["robot"] for row in sizes):
        rows = [row for row in sizes if row["robot"] == name]
        for row in rows:
            lines.append(_size_line(name, _name(row), [row]))
        lines.append(_size_line(name, "all", rows))
    return lines


def _size_line(name, text, rows):
    fields = ("instructions", "bytes", "seconds", "library_bytes")
    count, size, seconds, library = (sum(row[k] for row in rows) for k in fields)
    return f"{name:8}{text:38}{count:13.0f}{size / 1e3:9.0f}{seconds:8.1f}{library / 1e3:14.0f}"
