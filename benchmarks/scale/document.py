"""The tables of `docs/scale.md`, from the committed costs, checks, inputs and prices.

python -m benchmarks.scale.document
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks.scale import checked, costs, inputs, plans
from benchmarks.scale.cells import Cells
from benchmarks.scale.costs import Costs
from benchmarks.scale.inputs import Input
from benchmarks.scale.plans import Plan

COMMAND = "python -m benchmarks.scale.document"

PAGE = Path(__file__).parents[2] / "docs" / "scale.md"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table in Markdown, whose first columns are words."""
    marks = "|".join("---" if number < left else "--:" for number in range(len(headings)))
    head, *lines = (f"| {' | '.join(row)} |" for row in [headings, *rows])
    return "\n".join([head, f"|{marks}|", *lines])


def number(value: float) -> str:
    """A number with three digits that count."""
    if value >= 1000:
        digits = len(f"{value:.0f}") - 3
        return f"{round(value / 10**digits) * 10**digits:,}"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def duration(seconds: float) -> str:
    for size, unit in ((86_400 * 2, "days"), (7_200, "hours"), (180, "minutes"), (1, "s")):
        if seconds >= size:
            return f"{number(seconds / {'days': 86_400, 'hours': 3600, 'minutes': 60, 's': 1}[unit])} {unit}"
    return f"{number(seconds * 1000)} ms"


def size(count: float) -> str:
    for limit, unit in ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= limit:
            return f"{number(count / limit)} {unit}"
    return f"{count:.0f} B"


def plan_table(plan: Plan) -> str:
    limits = [one for one in plan.resources if one.only_one]
    first, *_ = limits
    facts = "\n".join(f"* {what}: {number(value)} {unit}".strip() for what, value, unit in plan.facts)
    resources = table(
        ["what has a limit", "needed", "one does", "times"],
        [
            [one.what, f"{number(one.demand)} {one.unit}".strip(), number(one.limit), number(one.times)]
            for one in limits
            if one is first or one.times >= 0.1
        ],
    )
    saturates = f"**{first.what.capitalize()}** saturates first: {number(first.times)} times what there is."
    if first.times <= 1:
        saturates = f"Nothing saturates. The next limit is **{first.what}**, at {first.times:.0%}."
    parts = [f"So in the plan:\n\n{facts}", f"{saturates}\n\n{resources}"]
    if plan.waits:
        waits = [[one.what, duration(one.p50), duration(one.p99)] for one in plan.waits]
        parts.append(table(["who waits for what", "p50", "p99"], waits))
    return "\n\n".join(parts)


def summary(together: Sequence[Plan]) -> str:
    """What limits each plan: what saturates first, and what would be next."""
    names = (
        "One event that 14 million people want",
        "100,000 organizers on one Saturday",
        "50,000 shops on a black Friday",
    )
    lines: list[str] = []
    for name, plan in zip(names, together, strict=True):
        first, second = plan.resources[:2]
        lines.append(
            f"* **{name}**: {first.what}, of which it takes {number(first.times)} times what there is; then "
            f"{second.what} ({number(second.times)} times)."
        )
    return "\n".join(lines)


def mail(measured: Costs) -> str:
    single = measured.single
    service, database = (single[f"mail, microseconds of {part}"] / 1000 for part in ("the service", "PostgreSQL"))
    return (
        f"A mail costs {number(service)} ms of the service and {number(database)} ms of PostgreSQL; one process sends "
        f"{number(single['mails a second'])} a second ([measured](benchmarks.md#mails) on another day)."
    )


def needs(together: Sequence[Plan]) -> str:
    """What the plans take, and what that costs: a column for each plan."""
    rows = [
        ["processes of the service", "", *(number(plan.processes) for plan in together)],
        ["cores that they use", "", *(number(plan.service_cores) for plan in together)],
        ["cores that PostgreSQL uses", "", *(number(plan.database_cores) for plan in together)],
        ["primaries, each with a standby", "", *(number(plan.primaries) for plan in together)],
    ]
    bills = [plan.bill.dollars() for plan in together]
    for amounts in zip(*bills, strict=True):
        what = amounts[0][0]
        price = f"${inputs.prices()[what].dollars:g}"
        rows.append([what, price, *(number(amount) for _, amount, _ in amounts)])
    rows.append(["together", "", *(f"${number(sum(dollars for _, _, dollars in bill))}" for bill in bills)])
    return table(["what", "price", "one event", "organizers", "shops"], rows)


def inputs_list(what: Sequence[Input]) -> str:
    return "\n".join(f"* {one.what}: {one.value:,.10g}" + (f" ({one.source})" if one.source else "") for one in what)


def one_process(measured: Costs, cells: Cells) -> str:
    rows = [
        [
            name,
            number(cell.per_second),
            *(f"{seconds * 1e6:,.0f}" for seconds in (cell.service, cell.database)),
        ]
        for name, cell in ((name, cells[name]) for name in measured.calls)
    ]
    headings = ["what", "a second", "service, µs", "PostgreSQL, µs"]
    return f"Measured on {measured.measured_on}: {measured.machine}.\n\n{table(headings, rows)}"


def blocks(measured: Costs, cells: Cells) -> dict[str, Callable[[], str]]:
    """What makes each table of the page."""
    together = [plan(measured, cells) for plan in (plans.crowd, plans.saturday, plans.friday)]
    return {
        "summary": lambda: summary(together),
        "mail": lambda: mail(measured),
        "check": lambda: checked.table_of_results(table),
        "common inputs": lambda: inputs_list(inputs.COMMON),
        "one process": lambda: one_process(measured, cells),
        "needs": lambda: needs(together),
        "crowd inputs": lambda: inputs_list(inputs.CROWD),
        "crowd": lambda: plan_table(together[0]),
        "saturday inputs": lambda: inputs_list(inputs.SATURDAY),
        "saturday": lambda: plan_table(together[1]),
        "friday inputs": lambda: inputs_list(inputs.FRIDAY),
        "friday": lambda: plan_table(together[2]),
    }


def written(page: str) -> str:
    """The page with its tables as the committed files give them."""
    measured = costs.read()
    cells = Cells(measured)
    made = blocks(measured, cells)

    def block(match: re.Match[str]) -> str:
        return f"<!-- {match[1]}: {COMMAND} -->\n{made[match[1]]()}\n<!-- end -->"

    return re.sub(rf"<!-- ([a-z ]+): {re.escape(COMMAND)} -->\n.*?<!-- end -->", block, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
