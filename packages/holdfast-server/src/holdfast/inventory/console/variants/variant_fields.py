"""Fields of forms that link variants to a pool."""

import msgspec

from holdfast.inventory.console.number_fields import NumberField
from holdfast.inventory.pools.model import Label
from holdfast.kit.contract.problems import BAD_REQUEST, Problem

UNITS_PER_SALE = NumberField(1, 10**9, 6)

UNITS_PREFIX = "units:"
"""The prefix of the field with the units per sale of a variant."""


def incomplete_form() -> Problem:
    """The problem of a form that lacks fields which each page of the service has."""
    return BAD_REQUEST("The form is not complete.", hint="Open the page again and send its form.")


def storable_label(text: str | None) -> str | None:
    """A text of the platform if a pool can store it with a variant; else None."""
    try:
        return msgspec.convert(text, Label | None)
    except msgspec.ValidationError:
        return None
