"""Messages that programs read in English, and people in their own language.

A message is an English text that also holds its template and its values, so that a page can translate it with a
catalogue. Programs get the English text only.
"""

from collections.abc import Callable, Mapping
from typing import Self

Value = str | int


class Message(str):
    """An English message.

    text      the key in the catalogues, with a placeholder for each value, such as `must be at most %(most)s`
    values    texts, numbers, other messages and field names
    """

    __slots__ = ("text", "values")

    text: str
    values: Mapping[str, Value]

    def __new__(cls, text: str, values: Mapping[str, Value]) -> Self:
        message = super().__new__(cls, text % values if values else text)
        message.text, message.values = text, values
        return message


class FieldName(str):
    """The name of a field for programs. People read its label instead."""

    __slots__ = ()


class GroupedNumber(int):
    """A number that is written with separators, such as 1,000."""

    def __str__(self) -> str:
        return format(int(self), ",")


def message(text: str, **values: Value) -> Message:
    """The message with a text and values. The text is a literal, so that it can be extracted into the catalogues."""
    return Message(text, values)


def translatable(text: str) -> str:
    """The text as it is. It is extracted into the catalogues, and translated where it is shown."""
    return text


def message_of(error: Exception) -> str:
    """The message of an error, with its template and values."""
    return error.args[0]


def message_text(
    message: Value, translate: Callable[[str], str], labels: Mapping[str, str], number: Callable[[int], str] = str
) -> str:
    """A message in the language of a page.

    translate    returns the translation of a text
    labels       the English labels of fields, by name
    number       formats a number
    """
    match message:
        case Message(text=text, values=values):
            words = {name: message_text(value, translate, labels, number) for name, value in values.items()}
            return translate(text) % words if words else translate(text)
        case FieldName() if message in labels:
            return translate(translatable("“%(label)s”")) % {"label": translate(labels[message])}
        case GroupedNumber():
            return number(int(message))
        case _:
            return str(message)
