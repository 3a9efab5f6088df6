"""Which plans read many times what their statements touch."""

import re
from collections import Counter
from collections.abc import Container, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from holdfast import kit
from tests.plans.recording import Plan, nodes

SOURCE = Path(kit.__file__).parents[1]

TIMES, ROWS = 20, 300
"""A plan may read at most this many times the rows that its statement touches, and at most this many rows more."""

BLOCKS, MORE_BLOCKS = 60, 400
"""The same for blocks of 8 KiB: an index that does not begin with what is looked up is read from end to end, and its
rows are not counted.
"""

NAME = r"^ *(?:async def |def |(?=[A-Z_]+: LiteralString))(\w+)"
"""What begins a function, or a part of a statement."""

SCANS = {"Seq Scan", "Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Bitmap Index Scan", "Tid Scan"}
GIVEN = {"Function Scan", "ProjectSet", "Values Scan"}


class Finding(NamedTuple):
    """A plan that reads too much.

    source   file and function of the statement
    what     how much it reads, where, and for how many rows
    """

    source: str
    what: str
    plan: Plan

    def __str__(self) -> str:
        return f"{self.source} ({self.plan.doing}): {self.what}"


def judge(plan: Plan) -> Finding | None:
    """What is wrong with a plan; None if it reads what it touches."""
    parts = nodes(plan.root)
    touched = (
        plan.value_count + plan.root["Actual Rows"] + sum(_changed_rows(part) + _generated_rows(part) for part in parts)
    )
    read = {id(part): _read(part) for part in parts}
    total = sum(read.values()) + plan.indirect_rows - sum(map(_bounded_rows, parts))
    blocks = plan.root.get("Shared Hit Blocks", 0) + plan.root.get("Shared Read Blocks", 0)
    if total > ROWS + TIMES * touched:
        worst = max(parts, key=lambda node: read[id(node)])
        what = f"reads {total:,.0f} rows to touch {touched:,.0f}; most of them by {_node_name(worst)}"
        if plan.indirect_rows > max(read.values()):
            what = f"its triggers or foreign keys read {plan.indirect_rows:,} rows to touch {touched:,.0f}"
    elif blocks > MORE_BLOCKS + BLOCKS * touched:
        worst = max((part for part in parts if part["Node Type"] in SCANS), key=_blocks, default=plan.root)
        what = f"reads {blocks:,} blocks to touch {touched:,.0f} rows; most of them by {_node_name(worst)}"
    else:
        return None
    return Finding(source_of(plan.statement), what, plan)


def _read(node: dict[str, Any]) -> float:
    """Rows that a part of a plan reads, also those that it then leaves out."""
    loops = node["Actual Loops"]
    left_out = node.get("Rows Removed by Join Filter", 0)
    if node["Node Type"] in SCANS:
        left_out += node["Actual Rows"]
        left_out += node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return left_out * loops


def _changed_rows(node: dict[str, Any]) -> float:
    """Rows that a part of a plan inserts, updates or deletes."""
    if node["Node Type"] != "ModifyTable":
        return 0
    return sum(part["Actual Rows"] * part["Actual Loops"] for part in node["Plans"][:1])


def _generated_rows(node: dict[str, Any]) -> float:
    """Rows that the statement itself makes, such as those of an array."""
    return node["Actual Rows"] * node["Actual Loops"] if node["Node Type"] in GIVEN else 0


def _bounded_rows(node: dict[str, Any]) -> float:
    """Rows that a part of a statement looks at one by one, once, as many as it says itself."""
    if node["Node Type"] != "Subquery Scan" or "Filter" not in node or node["Actual Loops"] != 1:
        return 0
    return sum(child["Actual Rows"] for child in node["Plans"] if child["Node Type"] == "Limit")


def _blocks(node: dict[str, Any]) -> int:
    return node.get("Shared Hit Blocks", 0) + node.get("Shared Read Blocks", 0)


def _node_name(node: dict[str, Any]) -> str:
    table = f" of {node['Relation Name']}" if "Relation Name" in node else ""
    index = f" by {node['Index Name']}" if "Index Name" in node else ""
    return f"{node['Node Type']}{table}{index}, {node['Actual Loops']:,.0f} times"


@cache
def source_of(statement: str) -> str:
    """Where a statement is: the file, and the function or the constant."""
    lines = [line.strip() for line in statement.splitlines() if len(line.strip()) > 8] or [statement.strip()]
    known, path, text = max((sum(line in text for line in lines), path, text) for path, text in _sources())
    if not known:
        return f"somewhere: {' '.join(statement.split())[:80]}"
    # A statement may be put together of parts; where most of it stands is its function.
    names = Counter(
        before[-1].group(1)
        for line in lines
        for match in re.finditer(re.escape(line), text)
        if (before := [*re.finditer(NAME, text[: match.start()], re.MULTILINE)])
    )
    return f"{path} {names.most_common(1)[0][0]}"


@cache
def _sources() -> Sequence[tuple[str, str]]:
    return [(str(path.relative_to(SOURCE)), path.read_text()) for path in sorted(SOURCE.rglob("*.py"))]


def findings_of(plans: Sequence[Plan], exceptions: Container[str]) -> str:
    """What is wrong with plans, each statement once; nothing of those in functions that are excepted."""
    findings = {finding.source: str(finding) for finding in map(judge, plans) if finding is not None}
    return "\n".join(what for where, what in sorted(findings.items()) if where not in exceptions)
