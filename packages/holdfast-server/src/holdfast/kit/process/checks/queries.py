"""Checks that are queries: conditions judge each row, and sentences with its columns say what is wrong."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from string import Formatter
from typing import Any, LiteralString, NamedTuple, cast

from holdfast.kit.process.checks.inspection import CheckStatus, Inspection
from holdfast_verify.terminal import names_text


class Fault(NamedTuple):
    """A condition on a row of a query, and the finding if it holds. The sentences have columns as fields."""

    condition: LiteralString
    message: str
    remedy: str
    status: CheckStatus = "wrong"


@dataclass(frozen=True)
class FaultQuery:
    """A query that is a check.

    sql       its parameters are attributes of the inspection or of the settings
    faults    the conditions that each row is judged by
    ok        the sentence if there is no fault; its fields are columns of the first row
    """

    sql: LiteralString
    faults: Sequence[Fault]
    ok: str

    def statement(self, inspection: Inspection[Any]) -> tuple[LiteralString, dict[str, Any]]:
        """The statement that finds the faults of each row, and its parameters."""
        conditions: LiteralString = ", ".join(f"({fault.condition})" for fault in self.faults)
        statement: LiteralString = f"select *, array[{conditions}] as conditions from ({self.sql}) as facts"
        names = re.findall(r"%\((\w+)\)s", statement)
        return statement, {
            name: getattr(inspection if hasattr(inspection, name) else inspection.settings, name) for name in names
        }

    async def __call__(self, inspection: Inspection[Any]) -> None:
        variables = {"service": inspection.name, "database_url": inspection.variable("database_url")}
        rows = await inspection.database.rows(dict[str, Any], *self.statement(inspection))
        for row in rows:
            for fault, is_met in zip(self.faults, row["conditions"], strict=True):
                if is_met:
                    message, remedy = (
                        SENTENCE_FORMATTER.format(text, **variables, **row) for text in (fault.message, fault.remedy)
                    )
                    inspection.add(fault.status, message, remedy)
        inspection.ok(SENTENCE_FORMATTER.format(self.ok, **(rows or [{}])[0]))


class _SentenceFormatter(Formatter):
    """Puts columns into sentences: intervals as durations, numbers with their noun: `{count:1 mail was|mails were}`."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, timedelta):
            return duration(value.total_seconds())
        if isinstance(value, list):
            return names_text(cast("list[str]", value))
        one, separator, several = format_spec.partition("|")
        if separator:
            return one if value == 1 else f"{value} {several}"
        return super().format_field(value, format_spec)


SENTENCE_FORMATTER = _SentenceFormatter()


def duration(seconds: float) -> str:
    """A duration in words, in its largest unit."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length * 0.95:
            number = max(1, round(seconds / length))
            return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
    return f"{seconds:.0f} seconds"


def overdue(work: str) -> tuple[Fault, Fault]:
    """The faults of work that has been due for long, by the column `age`.

    work    names the work, at the beginning of a sentence
    """
    return (
        Fault(
            "age > interval '1 minute' and %(process_count)s = 0",
            f"{work} for {{age}}. No process of the service runs.",
            "Start one: holdfast {service} serve",
            status="warning",
        ),
        Fault(
            "age > interval '1 minute' and %(process_count)s > 0",
            f"{work} for {{age}}.",
            "Look in the log of the processes for the reason. If they do no background work, start: "
            "holdfast {service} worker",
        ),
    )
