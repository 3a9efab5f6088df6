"""Whether those who waited for the draw of an event got their outcomes in its order, and nobody was passed over."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Entry = Mapping[str, Any]
"""An entry of a log, decoded from its JSON."""


def is_void(entry: Entry) -> bool:
    """Whether an entry says that a draw became void."""
    return "draw" in entry and "void" in entry["draw"]


def is_given_up(entry: Entry) -> bool:
    """Whether an entry says that the organizer gave a draw up."""
    return "draw" in entry and "given_up" in entry["draw"]


def check_turns(entries: Sequence[Entry], drawn: Sequence[int]) -> Iterator[str]:
    """What is wrong with the order of the outcomes: a sentence, or nothing.

    entries    all entries of the log, in their order
    drawn      the tickets in their drawn order; empty: there is no draw

    Who came after the list had closed follows in the order of the numbers. So do all, if a void draw was given up, or
    if the event was cancelled before the draw.
    """
    line, is_decided, has_void = _TurnReplay(entries, drawn), False, False
    for entry in entries:
        has_void |= is_void(entry)
        is_decided |= entry["kind"] == "draw" or entry.get("event") == "cancelled" or (has_void and is_given_up(entry))
        line.read(entry)
        if entry["kind"] != "place":
            continue
        fault = line.fault_of(entry["number"]) if is_decided else "before the draw"
        if fault:
            yield f"Number {entry['number']} got an outcome at {entry['at']}, {fault}."
            return


class _TurnReplay:
    """Those who wait for their turns, as far as the log is read."""

    def __init__(self, entries: Sequence[Entry], drawn: Sequence[int]) -> None:
        self._first = next((entry["first_number"] for entry in entries if entry["kind"] == "open"), 1)
        self._drawn = drawn
        self._turns = 0
        self._late = list[int]()
        self._left = set[int]()
        self._last_earlier = len(drawn)

    def read(self, entry: Entry) -> None:
        """Read who comes and who leaves."""
        if entry["kind"] == "arrival" and "outcome" not in entry and entry["number"] > len(self._drawn):
            self._late.append(entry["number"])
        elif entry["kind"] == "change" and entry.get("from") == "in_draw":
            self._left.add(entry["number"])

    def fault_of(self, number: int) -> str | None:
        """What is wrong if it is the turn of a number now. Who has left is passed over.

        Numbers of an earlier log that were not drawn come before those of this one. Who of them has left is unknown.
        """
        if self._last_earlier < number < self._first and self._turns <= len(self._drawn):
            self._last_earlier, self._turns = number, len(self._drawn)
            return None
        while self._turns < len(self._drawn) + len(self._late):
            turn, self._turns = self._turns, self._turns + 1
            expected = self._drawn[turn] if turn < len(self._drawn) else self._late[turn - len(self._drawn)]
            if expected == number:
                return None
            if expected >= self._first and expected not in self._left:
                return f"when it was the turn of number {expected}"
        return "although it waited no more"
