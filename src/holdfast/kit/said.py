"""Messages that programs read in English, and people in their language.

A message is an English text. It remembers what it was made of, so that a page can say it with a catalogue. What is sent
to programs knows nothing of this.
"""

from collections.abc import Callable, Mapping
from typing import Self

Value = str | int


class Said(str):
    """An English message.

    text      the key in the catalogues, with a place for each value, such as `must be at most %(most)s`
    values    texts, numbers, other messages, names of fields
    """

    __slots__ = ("text", "values")

    text: str
    values: Mapping[str, Value]

    def __new__(cls, text: str, values: Mapping[str, Value]) -> Self:
        message = super().__new__(cls, text % values if values else text)
        message.text, message.values = text, values
        return message


class FieldName(str):
    """The name of a field, as programs have it. People read its label."""

    __slots__ = ()


class Grouped(int):
    """A number of things, written as 1,000."""

    def __str__(self) -> str:
        return format(int(self), ",")


def said(text: str, **values: Value) -> Said:
    """A message. Its text is in the catalogues, and is written as a literal, so that it is found for them."""
    return Said(text, values)


def marked(text: str) -> str:
    """The same text. It is in the catalogues, and is translated where it is shown."""
    return text


def told(error: Exception) -> str:
    """The message of an error, with what it remembers."""
    return error.args[0]


def worded(
    message: Value, translate: Callable[[str], str], labels: Mapping[str, str], number: Callable[[int], str] = str
) -> str:
    """A message as a page says it.

    translate    gives the text of a catalogue
    labels       what stands above the fields, in English, by their names
    number       writes a number of things
    """
    match message:
        case Said(text=text, values=values):
            words = {name: worded(value, translate, labels, number) for name, value in values.items()}
            return translate(text) % words if words else translate(text)
        case FieldName() if message in labels:
            return translate(marked("“%(label)s”")) % {"label": translate(labels[message])}
        case Grouped():
            return number(int(message))
        case _:
            return str(message)
