"""Currencies: how they are counted, and which amounts of them the payment processor charges.

They are listed in `currencies.csv`, with where that is known from.
"""

import csv
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, LiteralString, NamedTuple, cast

MOST = 999_999_999_999
"""The largest amount of a charge, as the processor counts: twelve digits. The network of a card may take less."""


class Currency(NamedTuple):
    """How a currency is counted.

    digits    how many digits its minor unit has; amounts are in minor units
    unit      an amount that is charged is a multiple of it
    times     what the processor counts one minor unit as
    least     the least amount that is charged
    most      the largest amount that is charged
    """

    digits: int = 2
    unit: int = 1
    times: int = 1
    least: int = 1
    most: int = MOST


def _read(path: Path) -> dict[str, Currency]:
    with path.open(encoding="ascii", newline="") as file:
        rows = [*csv.DictReader(line for line in file if not line.startswith("#"))]
    return {
        row["code"]: Currency(
            int(row["digits"]),
            unit := int(row["unit"]),
            times := int(row["times"]),
            int(row["least"] or unit),
            MOST // times // unit * unit,
        )
        for row in rows
    }


CURRENCIES: Mapping[str, Currency] = _read(Path(__file__).with_name("currencies.csv"))
"""The presentment currencies of the payment processor, by their codes."""

_UNKNOWN = Currency()


def rules_of(currency: str) -> Currency:
    """How a currency is counted: with two digits if the processor does not charge in it any more."""
    return CURRENCIES.get(currency, _UNKNOWN)


def digits(currency: str) -> int:
    """How many digits the minor unit of a currency has: 2 for most."""
    return rules_of(currency).digits


def is_payable(amount: int, currency: str) -> bool:
    """Whether the processor charges an amount. It may refuse it even so, as where it has to convert the currency."""
    rules = CURRENCIES.get(currency)
    return rules is not None and rules.least <= amount <= rules.most and amount % rules.unit == 0


def to_processor(amount: int, currency: str) -> int:
    """An amount as the processor counts it."""
    return amount * rules_of(currency.upper()).times


def from_processor(amount: int, currency: str) -> int:
    """An amount that the processor names, as we count it."""
    return amount // rules_of(currency.upper()).times


def by_currency(member: Literal["unit", "least", "most"]) -> LiteralString:
    """SQL for what the list says about the currency of a row of `events`. The SQL is made of the list only."""
    usual: int = getattr(_UNKNOWN, member)
    codes: defaultdict[int, list[str]] = defaultdict(list)
    for code, rules in CURRENCIES.items():
        if (value := int(getattr(rules, member))) != usual:
            codes[value].append(f"'{code}'")
    cases = " ".join(f"when events.currency in ({', '.join(of)}) then {value}" for value, of in codes.items())
    return cast(LiteralString, f"(case {cases} else {usual} end)::bigint")
