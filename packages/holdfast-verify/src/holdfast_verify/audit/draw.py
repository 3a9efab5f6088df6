"""Whether a log proves its draw: what was named, frozen, drawn and let in, compared with what follows from it."""

import datetime as dt
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from holdfast_verify.formats import beacon
from holdfast_verify.formats.drawn_order import Freeze, draw_order, freeze_until, hash_of_order, round_of, seed_of
from holdfast_verify.formats.entries import timestamp
from holdfast_verify.formats.signed_note import Checkpoint

Entry = Mapping[str, Any]
"""An entry of a log, decoded from its JSON."""


def is_void(entry: Entry) -> bool:
    """Whether an entry says that a draw became void."""
    return "draw" in entry and "void" in entry["draw"]


def is_abandoned(entry: Entry) -> bool:
    """Whether an entry says that the organizer gave a draw up."""
    return "draw" in entry and "given_up" in entry["draw"]


def check_turns(entries: Sequence[Entry], drawn: Sequence[int]) -> Iterator[str]:
    """What is wrong with the order of the outcomes: a sentence, or nothing.

    entries    all entries of the log, in their order
    drawn      the tickets in their drawn order; empty: there is no draw

    People who came after the list had closed follow in the order of their numbers. If a void draw was given up, or if
    the event was cancelled before the draw, all people come in that order.
    """
    line, is_decided, has_void = _TurnReplay(entries, drawn), False, False
    for entry in entries:
        has_void |= is_void(entry)
        is_decided |= entry["kind"] == "draw" or entry.get("event") == "cancelled" or (has_void and is_abandoned(entry))
        line.read(entry)
        if entry["kind"] != "place":
            continue
        fault = line.fault_of(entry["number"]) if is_decided else "before the draw"
        if fault:
            yield f"Number {entry['number']} got an outcome at {entry['at']}, {fault}."
            return


class _TurnReplay:
    """The visitors who wait for their turns, as far as the log is read."""

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
        """What is wrong if it is the turn of a number now. People who have left are passed over.

        Numbers of an earlier log that were not drawn come before those of this one. Which of them have left is unknown.
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


MAX_EARLIER_TICKETS = 3_000_000
"""Tickets of earlier logs that a list may have. The order is computed of at most this many tickets more than the log
has entries.
"""


def check_draw(entries: Sequence[Entry], origin: str, root_at: Callable[[int], bytes]) -> list[str]:
    """What is wrong with the draw of a log: a sentence for each fault, none if all is right or there is no draw.

    entries    all entries of the log of a queue or an event, in their order, of one generation
    origin     the origin of the log
    root_at    the root of the log's tree at a size, of at most the number of entries

    Whether numbers, times and proofs are right is for the caller to check. A draw that is not made yet has no fault,
    unless a visitor was let in.
    """
    try:
        return list(_Draw(entries, origin, root_at).faults())
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return ["An entry about the draw is not written as the format of the log has it."]


def check_cosigned_freeze(
    entries: Sequence[Entry],
    head: Checkpoint,
    cosigned_at: Mapping[str, dt.datetime],
    root_at: Callable[[int], bytes],
) -> list[str]:
    """What is wrong with the freeze of a log, by what witnesses cosigned before the round: a sentence for each fault.

    head           the head of this log in the head log that the witnesses cosigned
    cosigned_at    the times of verified cosignatures, by the names of the witnesses
    """
    index = next((index for index, entry in enumerate(entries) if entry["kind"] == "freeze"), None)
    if index is None:
        return []
    if head.size > len(entries) or root_at(head.size) != head.root:
        size = f"{head.size:,} entries that were cosigned with the freeze"
        return [f"The log does not begin with the {size}: it was rewritten since, perhaps with another list."]
    if head.size <= index:
        return [f"The {head.size:,} entries that were cosigned do not have the freeze, which is entry {index:,}."]
    round_at = beacon.time_of(entries[index]["round"])
    return [
        f"{witness} cosigned the freeze at {timestamp(at)}, when the round could be known already."
        for witness, at in cosigned_at.items()
        if at >= round_at
    ]


class _Draw:
    """The draw of a log."""

    def __init__(self, entries: Sequence[Entry], origin: str, root_at: Callable[[int], bytes]) -> None:
        self._entries, self._origin, self._root_at = entries, origin, root_at
        self._freezes = self._indexes("freeze")
        self._confirmations = self._indexes("confirmations")
        self._draws = self._indexes("draw")
        self._first = next((entry["first_number"] for entry in entries if entry["kind"] == "open"), 1)

    def faults(self) -> Iterator[str]:
        named_by = self._naming()
        if named_by is None:
            if self._freezes or self._draws or self._confirmations:
                yield "There is a freeze or a draw, but the log names no round for it before people entered."
            return
        naming = named_by["draw"]
        yield from self._changes()
        if naming["chain"] != beacon.CHAIN or naming["round"] != round_of(_time(naming["at"])):
            yield f"The round {naming['round']} is not the one that belongs to a draw at {naming['at']}."
        if len(self._freezes) > 1:
            yield "The list was frozen more than once."
        if len(self._draws) > 1:
            yield "The list was drawn more than once."
        freeze = self._freezes[0] if self._freezes else None
        yield from self._dated_late(named_by, freeze)
        yield from self._voids(freeze)
        yield from self._releases()
        yield from self._confirmed(freeze)
        yield from check_turns(self._entries, self._drawn_order())
        if freeze is not None:
            yield from self._frozen(freeze, naming)
        if self._draws:
            yield from self._drawn(self._draws[0], freeze, naming)

    def _naming(self) -> Entry | None:
        """The entry that names the draw before the first entrant: the last naming counts."""
        naming = None
        for entry in self._entries:
            if entry["kind"] == "arrival":
                break
            if "draw" in entry and not is_void(entry):
                naming = None if is_abandoned(entry) else entry
        return naming

    def _dated_late(self, named_by: Entry, freeze: int | None) -> Iterator[str]:
        """What was done before the round, and is dated when the round could be known already.

        A log that follows another one, after a restored backup, repeats what the other one names and has frozen.
        """
        round_at = beacon.time_of(named_by["draw"]["round"])
        if freeze is None:
            if "after" not in self._entries[0] and _time(named_by["at"]) >= round_at:
                yield f"The draw was named at {named_by['at']}, when the round could be known already."
            return
        if self._is_repeated(freeze):
            return
        for index, entry in enumerate(self._entries[:freeze]):
            if entry["kind"] != "arrival" and _time(entry["at"]) >= round_at:
                time = f"{entry['at']}, when the round could be known already"
                yield f"Entry {index} ({entry['kind']}) is before the freeze, and is dated {time}."
                return

    def _changes(self) -> Iterator[str]:
        """Faults of changes of the draw after the first entrant: only a void draw can be given up."""
        is_entered = has_void = False
        for entry in self._entries:
            is_entered |= entry["kind"] == "arrival"
            has_void |= is_void(entry)
            if is_entered and "draw" in entry and not is_void(entry) and not (has_void and is_abandoned(entry)):
                yield f"The draw was changed at {entry['at']}, after people had entered."

    def _voids(self, freeze: int | None) -> Iterator[str]:
        for entry in filter(is_void, self._entries):
            if freeze is not None and not list(self._lateness(freeze, entry["draw"]["round"])):
                yield f"The draw became void at {entry['at']}, although the list was frozen in time."
            elif freeze is None and _time(entry["at"]) <= freeze_until(entry["draw"]["round"]):
                yield f"The draw became void at {entry['at']}, when the list could still be frozen."

    def _lateness(self, freeze: int, round: int) -> Iterator[str]:
        """Why a freeze came too late for a round, if it did. One that is repeated is judged in its own log."""
        if self._is_repeated(freeze):
            return
        at = self._entries[freeze]["at"]
        if _time(at) > freeze_until(round):
            yield f"The list was frozen at {at}, less than 30 seconds before the round."
        sealed_at = next((entry["at"] for entry in self._entries[freeze:] if entry["kind"] == "seal"), None)
        if sealed_at and _time(sealed_at) >= beacon.time_of(round):
            yield f"The freeze was sealed at {sealed_at}, when the round could be known already."

    def _releases(self) -> Iterator[str]:
        """Entrants are let in only after the draw, or after a void draw was given up for the order of arrival."""
        has_void = False
        for entry in self._entries:
            has_void |= is_void(entry)
            if entry["kind"] == "draw" or (has_void and is_abandoned(entry)):
                return
            if entry["kind"] == "release":
                yield f"A visitor was let in at {entry['at']}, before the draw."
                return

    def _drawn_order(self) -> list[int]:
        """The tickets in the order that follows from the seed of the draw, confirmed ones first.

        `_drawn` judges the seed.
        """
        if not self._freezes or not self._draws:
            return []
        freeze = self._entries[self._freezes[0]]
        if not self._can_have(freeze["entries"]):
            return []
        end = self._end_of_list(self._freezes[0])
        indexes = [index for index in self._confirmations if index < end]
        confirmed = {number for index in indexes for number in self._entries[index]["numbers"]}
        order = draw_order(_hex(self._entries[self._draws[0]]["seed"]), freeze["entries"])
        return sorted(order, key=lambda ticket: ticket not in confirmed)

    def _confirmed(self, freeze: int | None) -> Iterator[str]:
        """Entries are confirmed once, and before the list is frozen."""
        earlier = set[int]()
        for index in self._confirmations:
            entry = self._entries[index]
            for number in entry["numbers"]:
                if freeze is not None and index >= self._end_of_list(freeze):
                    yield f"Number {number} was confirmed at {entry['at']}, after the list was frozen."
                elif freeze is not None and number > self._entries[freeze]["entries"]:
                    yield f"Number {number} was confirmed, and is not in the list."
                elif number in earlier:
                    yield f"Number {number} was confirmed twice."
                earlier.add(number)

    def _frozen(self, index: int, naming: Entry) -> Iterator[str]:
        entry, count = self._entries[index], self._entries[index]["entries"]
        if not self._can_have(count):
            yield f"The freeze has {count:,} entries, which is more than the log can have."
        if entry["round"] != naming["round"]:
            yield f"The list was frozen for round {entry['round']}, but round {naming['round']} was named before."
        if self._is_repeated(index):
            is_late = any(arrival < index for arrival in self._indexes("arrival"))
            if "after" not in self._entries[0] or count >= self._first or is_late:
                yield "A freeze of another log is repeated, which this log does not follow."
            return
        if self._draws:
            yield from self._lateness(index, naming["round"])
        if not 0 < entry["size"] <= index:
            yield "The freeze names a size that the log did not have then."
        elif b64decode(entry["root"]) != self._root_at(entry["size"]):
            yield "The frozen list is not the one in the log: the root of the freeze is that of another log."
        numbers = [(at, entry) for at, entry in enumerate(self._entries) if entry["kind"] == "arrival"]
        in_list = [arrival["number"] for at, arrival in numbers if at < entry["size"] and arrival["number"] <= count]
        if len(in_list) != count - self._first + 1 or in_list != list(range(self._first, count + 1)):
            tickets = f"the tickets {self._first} to {count}"
            yield f"The freeze has {count} entries, but the log before it has not just {tickets}."
        closed = _time(naming["at"])
        for at, arrival in numbers:
            is_in_time = _time(arrival["at"]) < closed
            if arrival["number"] > count and is_in_time:
                yield f"Ticket {arrival['number']} came before the list was closed, and is not in it."
            elif arrival["number"] <= count and not is_in_time:
                yield f"Ticket {arrival['number']} came after the list was closed, and is in it."
            elif arrival["number"] <= count and at >= entry["size"]:
                yield f"Ticket {arrival['number']} was put into the list after the freeze."

    def _drawn(self, index: int, freeze_index: int | None, naming: Entry) -> Iterator[str]:
        entry = self._entries[index]
        if freeze_index is None or freeze_index > index:
            yield "The list was drawn before it was frozen."
            return
        if entry["round"] != naming["round"]:
            yield f"The list was drawn with round {entry['round']}, but round {naming['round']} was named before."
        if _time(entry["at"]) < beacon.time_of(entry["round"]):
            yield f"The list was drawn at {entry['at']}, before the time of the round."
        signature = _hex(entry["signature"])
        try:
            beacon.verify(naming["chain"], entry["round"], signature)
        except beacon.InvalidRound as error:
            yield str(error)
            return
        frozen = self._entries[freeze_index]
        count = frozen["entries"]
        if not self._can_have(count):
            return  # The freeze is wrong, which was said.
        seed = seed_of(
            Freeze(
                frozen.get("origin", self._origin), count, b64decode(frozen["root"]), naming["chain"], entry["round"]
            ),
            signature,
        )
        if entry["seed"] != seed.hex():
            yield "The seed of the draw does not follow from the freeze and the round."
        if entry["order"] != hash_of_order(draw_order(seed, count)).hex():
            yield "The order of the draw does not follow from the freeze and the round."

    def _is_repeated(self, freeze: int) -> bool:
        """Whether a freeze is that of an earlier log, after a restored backup."""
        return "origin" in self._entries[freeze]

    def _end_of_list(self, freeze: int) -> int:
        """The place of the first entry that a freeze does not cover."""
        return freeze if self._is_repeated(freeze) else self._entries[freeze]["size"]

    def _can_have(self, count: int) -> bool:
        """Whether a list can have this number of tickets. If not, something else is wrong, which is said."""
        return 0 <= count < min(self._first, MAX_EARLIER_TICKETS) + len(self._entries)

    def _indexes(self, kind: str) -> list[int]:
        return [index for index, entry in enumerate(self._entries) if entry["kind"] == kind]


def _hex(digits: str) -> bytes:
    try:
        return bytes.fromhex(digits)
    except ValueError:
        return b""


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text)
