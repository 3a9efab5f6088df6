"""Currencies: their minor units, and the amounts of them that the payment processor charges.

They are listed in `currencies.csv`, with the sources.
"""

import csv
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, LiteralString, NamedTuple, cast

MAX_AMOUNT = 999_999_999_999
"""The largest amount of a charge, as the processor counts: twelve digits. The network of a card may take less."""


class Currency(NamedTuple):
    """How a currency is counted.

    digits      the digits of its minor unit; amounts are in minor units
    unit        every charged amount is a multiple of it
    times       the number of units that the processor counts for one minor unit
    min_amount  the smallest amount that the processor charges
    max_amount  the largest amount that the processor charges
    """

    digits: int = 2
    unit: int = 1
    times: int = 1
    min_amount: int = 1
    max_amount: int = MAX_AMOUNT


def _read(path: Path) -> dict[str, Currency]:
    with path.open(encoding="ascii", newline="") as file:
        rows = [*csv.DictReader(line for line in file if not line.startswith("#"))]
    return {
        row["code"]: Currency(
            int(row["digits"]),
            unit := int(row["unit"]),
            times := int(row["times"]),
            int(row["least"] or unit),
            MAX_AMOUNT // times // unit * unit,
        )
        for row in rows
    }


CURRENCIES: Mapping[str, Currency] = _read(Path(__file__).with_name("currencies.csv"))
"""The presentment currencies of the payment processor, by their codes."""

_UNKNOWN = Currency()


def rules_of(currency: str) -> Currency:
    """The rules of a currency: two digits if the processor does not charge in it any more."""
    return CURRENCIES.get(currency, _UNKNOWN)


def digits(currency: str) -> int:
    """The digits of the minor unit of a currency: 2 for most."""
    return rules_of(currency).digits


def is_payable(amount: int, currency: str) -> bool:
    """Whether the processor charges an amount. It may still refuse it, as when it has to convert currencies."""
    rules = CURRENCIES.get(currency)
    return rules is not None and rules.min_amount <= amount <= rules.max_amount and amount % rules.unit == 0


def to_processor(amount: int, currency: str) -> int:
    """An amount as the processor counts it."""
    return amount * rules_of(currency.upper()).times


def from_processor(amount: int, currency: str) -> int:
    """An amount of the processor in minor units."""
    return amount // rules_of(currency.upper()).times


def by_currency(member: Literal["unit", "min_amount", "max_amount"]) -> LiteralString:
    """SQL for a member of the rules of the currency of a row of `events`. The SQL is made of the list only."""
    default: int = getattr(_UNKNOWN, member)
    codes: defaultdict[int, list[str]] = defaultdict(list)
    for code, rules in CURRENCIES.items():
        if (value := int(getattr(rules, member))) != default:
            codes[value].append(f"'{code}'")
    cases = " ".join(f"when events.currency in ({', '.join(of)}) then {value}" for value, of in codes.items())
    return cast(LiteralString, f"(case {cases} else {default} end)::bigint")
