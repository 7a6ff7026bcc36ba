"""Rows of the table of waits from what the processes told."""

from statistics import median

FIELDS = ("line", "part", "unit", "before", "now", "ratio", "aim", "peers", "before median", "now median")
FIELDS += ("before CPU", "now CPU", "runs", "before told", "now told")
SHOWN = ("line", "part", "before", "now", "ratio", "aim", "peers")


def rows_of(line, told):
    """Rows {field: text} of a line, one a part. told: {who: [Told]}, "before" and "now" and peers."""
    parts = {}  # in the order in which they came
    for who in ("now", "before"):
        for run in told.get(who, ()):
            parts |= {p["part"]: p["unit"] for p in run.parts if p["part"] not in parts}
    if not parts:
        parts = {"": ""}
    rows = []
    for number, (part, unit) in enumerate(parts.items()):
        sides = {who: _summed(part, told[who]) for who in ("before", "now") if who in told}
        row = dict.fromkeys(FIELDS, "") | {"line": line.name, "part": part, "unit": unit}
        for who, (values, cpu, text, status) in sides.items():
            row[who] = number_text(min(values)) if values else status
            if values:
                row[f"{who} median"] = number_text(median(values))
                row[f"{who} CPU"] = number_text(min(cpu)) if cpu else ""
                row[f"{who} told"] = text
        row["ratio"] = ratio(sides)
        row["aim"] = number_text(line.aims[part]) if part in line.aims else ""
        row["runs"] = len(told.get("now", ()))
        row["peers"] = "; ".join(
            x for peer in line.peers if peer in told and (x := _peer(peer, part, told[peer][0], number))
        )
        rows.append(row)
    return rows


def _summed(part, runs):
    """(values, CPU seconds, what was told, a status) of a part in several runs."""
    found = [p for run in runs for p in run.parts if p["part"] == part]
    cpu = [p["cpu"] for p in found if p.get("cpu") is not None]
    status = next((run.status for run in runs if not run.done), "not measured")
    return [p["value"] for p in found], cpu, found[0].get("told", "") if found else "", status


def ratio(sides):
    """Text: now over before, of seconds of the processor where both sides have them; "" unless both are known."""
    if set(sides) < {"before", "now"} or not (sides["before"][0] and sides["now"][0]):
        return ""
    which = 1 if sides["before"][1] and sides["now"][1] else 0
    before, now = (min(sides[who][which]) for who in ("before", "now"))
    return f"{now / before:.3g}" if before > 0 else ""


def _peer(peer, part, told, number):
    """Text: a peer and its value of a part; what went wrong stands in the first row of a line."""
    values = [p for p in told.parts if p["part"] == part]
    if values:
        more = values[0].get("told", "")
        return f"{peer} {number_text(values[0]['value'])}" + (f" ({more})" if more else "")
    return "" if told.done or number else f"{peer}: {told.status}"


def number_text(x):
    """A number in four digits; whole ones as they are."""
    return str(x) if isinstance(x, int) else f"{x:.4g}"


def shown(row):
    """The cells of a row of the report."""
    text = {who: f"{row[who]} {row['unit']}" if _is_number(row[who]) else row[who][:40] for who in ("before", "now")}
    return [{**row, **text}[k] for k in SHOWN]


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True
