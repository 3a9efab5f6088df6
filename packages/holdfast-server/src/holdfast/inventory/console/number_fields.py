"""Numbers that people type into forms: each is read, or refused with an example beside its field."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from holdfast.kit.contract.command import Errors
from holdfast.kit.contract.messages import GroupedNumber, Message, message

_NUMBER = re.compile("-?[0-9]{1,100}")


class NumberField(NamedTuple):
    """The least and the most that a field accepts, and an example that suits it."""

    minimum: int
    maximum: int
    example: int

    def read(self, text: str) -> int | Message:
        """The typed number, or the message that refuses it."""
        if not _NUMBER.fullmatch(text):
            return message("Enter a number, such as %(example)s.", example=GroupedNumber(self.example))
        number = int(text)
        if number < self.minimum:
            return message(
                "Enter %(least)s or more, such as %(example)s.",
                least=GroupedNumber(self.minimum),
                example=GroupedNumber(self.example),
            )
        if number > self.maximum:
            return message("Enter %(most)s or less.", most=GroupedNumber(self.maximum))
        return number


def read_numbers(fields: Mapping[str, str], numbers: Mapping[str, NumberField]) -> tuple[dict[str, int], Errors]:
    """The typed numbers, and the errors of other texts. A field that is empty is in neither."""
    results = {name: field.read(fields[name]) for name, field in numbers.items() if fields.get(name)}
    values = {name: number for name, number in results.items() if isinstance(number, int)}
    return values, {name: [error] for name, error in results.items() if isinstance(error, Message)}
