"""The replay of a log of an event: what each person has after each entry, a seat, a place on the waiting list or none.

A replay needs a byte of memory for each arrival, and more for each person who waits or was drawn.

Entries after a wrong outcome may follow from the outcome in the log, or from the one that the rules demand. So copies
of the replay go on beside it, each with an outcome that the rules allow. An entry that fits only some replays ends the
others. An entry that fits none is a further fault.
"""

import copy
import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple

from holdfast_verify.audit.entries import (
    Actor,
    ChangeEntry,
    DrawNaming,
    OpenEntry,
    RegistrationOutcome,
    RegistrationStatus,
)

_STATUSES: tuple[RegistrationStatus, ...] = ("registered", "held", "waitlisted", "rejected", "removed", "in_draw")
_CODES = {status: code for code, status in enumerate(_STATUSES)}
_PUT_ASIDE_CODE = len(_STATUSES)
"""The code of a person whom the organizer has put on the waiting list. Only the organizer moves the person back."""

SEATED = ("registered", "held")

MAX_MISSING_NUMBERS = 100_000
"""How many numbers may be missing in all gaps together. A gap is a fraud; the replay goes on after it."""


class BrokenRule(NamedTuple):
    """A rule of the order that an entry breaks. The message is a sentence."""

    rule: str
    message: str
    number: int | None = None


class PlaceReplay:
    """Replays the arrivals and changes of one event.

    capacity               seats in all
    seated, waiting        people with a seat, held or not; people on the waiting list
    in_draw                people who wait for a draw
    is_by_draw             whether a draw was named, here or in an earlier log whose entries still wait
    awaits_draw            whether a named draw is neither made nor given up; a cancelled event does not wait for it
    unjudged_promotions    promotions while people waited who came before the log: the log does not have their order
    expected_outcomes      what the last outcome had to be by the rules; of a paid event a seat is held or registered
    """

    def __init__(self, entry: OpenEntry) -> None:
        self.capacity, self.waiting_places = entry.capacity, entry.waiting_places
        self.seated, self.waiting = entry.seated, entry.waiting
        self.is_cancelled = entry.event == "cancelled"
        self.unjudged_promotions = 0
        self.expected_outcomes: tuple[RegistrationOutcome, ...] = ()
        self.in_draw = entry.in_draw or 0
        self.awaits_draw = False
        self.is_by_draw = entry.in_draw is not None
        self._ranks: dict[int, int] = {}
        self.name_draw(entry.draw)
        self._first = entry.first_number
        self._codes = bytearray()
        self._missing_left = MAX_MISSING_NUMBERS
        self._seated_before_log, self._waiting_before_log = entry.seated, entry.waiting
        self._waitlist: list[tuple[int, int]] = []
        self._promoted_numbers: list[int] = []
        self._has_changes = True

    def status(self, number: int) -> RegistrationStatus | None:
        """What the person with a number has at present; None if no arrival had the number."""
        index = number - self._first
        if not 0 <= index < len(self._codes):
            return None
        code = self._codes[index]
        return "waitlisted" if code == _PUT_ASIDE_CODE else _STATUSES[code]

    def name_draw(self, draw: DrawNaming | None) -> None:
        """Replay what an entry says of a draw. None: it says nothing."""
        if draw and not draw.void:
            self.awaits_draw = not draw.given_up
            self.is_by_draw = True

    def add_arrival(self, number: int, outcome: RegistrationOutcome | None) -> Iterator[BrokenRule]:
        """Replay an arrival, which has the next number. A person who waits for a draw has no outcome yet."""
        yield from self.end_changes()
        self.expected_outcomes = ()
        if outcome is None:
            if not self.is_by_draw:
                yield BrokenRule("form", f"Number {number} has no outcome.", number)
            self._count("in_draw", 1)
            self._store_code(number, _CODES["in_draw"])
            return
        if self.awaits_draw and not self.is_cancelled:
            yield BrokenRule("outcome", f"Number {number} was {outcome} before the draw.", number)
        elif self.in_draw:
            message = (
                f"Number {number} was {outcome} on arrival, although {self.in_draw} who came before had no outcome."
            )
            yield BrokenRule("outcome", message, number)
        else:
            yield from self._mismatches(number, outcome)
        self._count(outcome, 1)
        if self._store_code(number, _CODES[outcome]) and outcome == "waitlisted":
            self._join_waitlist(number)

    def add_drawn_outcome(self, number: int, outcome: RegistrationOutcome) -> Iterator[BrokenRule]:
        """Replay an outcome after a draw. `holdfast_verify/audit/draw.py` judges whose turn it was."""
        yield from self.end_changes()
        self.expected_outcomes = ()
        if self.awaits_draw and not self.is_cancelled:
            yield BrokenRule("outcome", f"Number {number} was {outcome} before the draw.", number)
        else:
            yield from self._mismatches(number, outcome)
        self._count(outcome, 1)
        self._count("in_draw", -1)
        if number < self._first:  # It arrived in an earlier log.
            self._seated_before_log += outcome in SEATED
            self._waiting_before_log += outcome == "waitlisted"
            return
        yield from self._check_status_before(number, "in_draw")
        if 0 <= number - self._first < len(self._codes):
            self._ranks[number] = self._first + len(self._ranks)
            self._store_status(number, outcome, "service")

    def correct(self, number: int, outcome: RegistrationOutcome, lawful_outcome: RegistrationOutcome) -> None:
        """Go on as if the outcome that was just replayed had been another one."""
        self._count(outcome, -1)
        self._count(lawful_outcome, 1)
        self._store_status(number, lawful_outcome, "service")

    def add_change(self, entry: ChangeEntry) -> Iterator[BrokenRule]:
        """Replay a change of the event, or of the place of a person."""
        if entry.before and entry.after and not entry.person:
            yield from self._move(entry.number, entry.before, entry.after, entry.by)
            return
        if entry.person:
            return  # It was removed before it was settled, and had no place.
        yield from self.end_changes()
        if entry.capacity is not None:
            self.capacity = entry.capacity
        if entry.waiting_places is not None:
            self.waiting_places = entry.waiting_places
        self.is_cancelled = self.is_cancelled or entry.event == "cancelled"
        self.name_draw(entry.draw)
        self._has_changes = True

    def end_changes(self) -> Iterator[BrokenRule]:
        """Judge the changes since the last arrival: one statement may have logged several, in any order."""
        yield from self._end_promotions()
        if self._has_changes and self.seated > self.capacity:
            yield BrokenRule("capacity", f"{self.seated} seats are taken of {self.capacity}.")
        self._has_changes = False

    def _store_code(self, number: int, code: int) -> bool:
        """Store what a number has, and return True. A number far from the earlier ones is not stored.

        The audit reports the gap.
        """
        index, gap = number - self._first, number - self._first - len(self._codes)
        if index < 0 or gap > self._missing_left:
            return False
        self._missing_left -= max(gap, 0)
        self._codes.extend([_CODES["removed"]] * max(gap + 1, 0))
        self._codes[index] = code
        return True

    def _mismatches(self, number: int, outcome: RegistrationOutcome) -> Iterator[BrokenRule]:
        """The rules that an outcome breaks. What it had to be follows from the seats and the waiting list."""
        is_free, has_waiting_place = self.seated < self.capacity, self.waiting < self.waiting_places
        expected: RegistrationOutcome
        if self.is_cancelled:
            expected, reason = "rejected", "the event was cancelled"
        elif is_free:
            expected, reason = "registered", f"{self.capacity - self.seated} of {self.capacity} seats were free"
        elif has_waiting_place:
            expected = "waitlisted"
            reason = f"no seat was free, and {self.waiting} of {self.waiting_places} waiting places were taken"
        else:
            expected, reason = "rejected", "no seat and no waiting place was free"
        self.expected_outcomes = ("registered", "held") if expected == "registered" else (expected,)
        if outcome != expected and not (outcome == "held" and expected == "registered"):
            yield BrokenRule("outcome", f"Number {number} was {outcome}, although {reason}.", number)
        elif outcome in SEATED and (first := self._first_on_waitlist()) is not None:
            yield BrokenRule(
                "outcome", f"Number {number} was given a seat on arrival, although number {first} waited.", number
            )

    def _move(
        self, number: int | None, before: RegistrationStatus, after: RegistrationStatus, by: Actor
    ) -> Iterator[BrokenRule]:
        if number is not None and number < self._first:
            number = None  # It has its number from an earlier log.
        # Only organizers choose who moves up. No person moves up alone.
        is_promotion = by != "organizer" and before == "waitlisted" and after in SEATED
        if not is_promotion:
            yield from self._end_promotions()
        yield from self._check_status_before(number, before)
        self._count(before, -1)
        self._count(after, 1)
        self._has_changes = True
        if number is None:
            self._seated_before_log += (after in SEATED) - (before in SEATED)
            self._waiting_before_log += (after == "waitlisted") - (before == "waitlisted")
            if self._seated_before_log < 0 or self._waiting_before_log < 0:
                self._seated_before_log = max(self._seated_before_log, 0)
                self._waiting_before_log = max(self._waiting_before_log, 0)
                yield BrokenRule("counts", "More people left a place than had come before the log began.")
            if before == "pending" and after != "removed":
                message = f"A person without a number was {after}: an older version may settle so during an upgrade."
                yield BrokenRule("unnumbered", message)
        elif 0 <= number - self._first < len(self._codes):
            self._store_status(number, after, by)
        if by != "organizer" and before == "rejected" and after in SEATED:
            first = self._first_on_waitlist()
            if first is not None:
                message = f"{_subject_of(number)} was given a seat after a rejection, although number {first} waited."
                yield BrokenRule("promotion", message, number)
        if is_promotion and self.is_cancelled:
            yield BrokenRule("promotion", f"{_subject_of(number)} moved up, although the event was cancelled.", number)
        if is_promotion and number is not None:
            self._promoted_numbers.append(number)
            if self._waiting_before_log:
                self.unjudged_promotions += 1

    def _check_status_before(self, number: int | None, before: RegistrationStatus) -> Iterator[BrokenRule]:
        """The fault if the earlier status in a change is not the status that the person had."""
        if number is None:
            return
        status = self.status(number)
        if status is None:
            yield BrokenRule("numbers", f"Number {number} changes, although no person has arrived with it.", number)
        elif status != before:
            yield BrokenRule("status", f"Number {number} was {status}, but the entry says {before}.", number)

    def _store_status(self, number: int, after: RegistrationStatus, by: Actor) -> None:
        """Store what a number has after a change."""
        is_put_aside = after == "waitlisted" and by == "organizer"
        self._codes[number - self._first] = _PUT_ASIDE_CODE if is_put_aside else _CODES.get(after, _CODES["removed"])
        if after == "waitlisted" and not is_put_aside:
            self._join_waitlist(number)

    def _end_promotions(self) -> Iterator[BrokenRule]:
        """The people who moved up are the first who waited. One statement logs them in any order."""
        if not self._promoted_numbers:
            return
        first = self._first_on_waitlist()
        for number in sorted(self._promoted_numbers):
            if first is not None and self._rank(number) > self._rank(first):
                yield BrokenRule("promotion", f"Number {number} moved up, although number {first} waited.", number)
        self._promoted_numbers.clear()

    def _first_on_waitlist(self) -> int | None:
        """The first of the people who wait for a seat. Those who have left the list are dropped here."""
        while self._waitlist and self._codes[self._waitlist[0][1] - self._first] != _CODES["waitlisted"]:
            heapq.heappop(self._waitlist)
        return self._waitlist[0][1] if self._waitlist else None

    def _join_waitlist(self, number: int) -> None:
        heapq.heappush(self._waitlist, (self._rank(number), number))

    def _rank(self, number: int) -> int:
        """The place of a number in the order: the number itself, except for people whom a draw has placed."""
        return self._ranks.get(number, number)

    def _count(self, status: RegistrationStatus, difference: int) -> None:
        if status in SEATED:
            self.seated += difference
        elif status == "waitlisted":
            self.waiting += difference
        elif status == "in_draw":
            self.in_draw += difference


def _subject_of(number: int | None) -> str:
    return "A person who came before the log" if number is None else f"Number {number}"


MAX_REPLAYS = 6
"""Replays that go on side by side."""

MAX_FORKS = 20
"""Wrong outcomes after which a replay goes on as the rules demand. Each copies what it knows of all arrivals."""

ReplayStep = Callable[[PlaceReplay], Iterator[BrokenRule]]


class ParallelReplays:
    """Replays the arrivals and changes of one event. `main` is the replay that the log fits best."""

    def __init__(self, entry: OpenEntry) -> None:
        self._replays = [PlaceReplay(entry)]
        self._forks_left = MAX_FORKS

    @property
    def main(self) -> PlaceReplay:
        return self._replays[0]

    def add_arrival(self, number: int, outcome: RegistrationOutcome | None) -> Iterator[BrokenRule]:
        """Replay an arrival, which has the next number. A person who waits for a draw has no outcome yet."""
        yield from self._replay_outcome(number, outcome, lambda replay: replay.add_arrival(number, outcome))

    def add_drawn_outcome(self, number: int, outcome: RegistrationOutcome) -> Iterator[BrokenRule]:
        """Replay an outcome after a draw."""
        yield from self._replay_outcome(number, outcome, lambda replay: replay.add_drawn_outcome(number, outcome))

    def add_change(self, entry: ChangeEntry) -> Iterator[BrokenRule]:
        """Replay a change of the event, or of the place of a person."""
        yield from self._replay(lambda replay: replay.add_change(entry))

    def end_changes(self) -> Iterator[BrokenRule]:
        """Judge the changes since the last arrival."""
        yield from self._replay(PlaceReplay.end_changes)

    def end_draw(self) -> None:
        """The draw was made: places are given now."""
        for replay in self._replays:
            replay.awaits_draw = False

    def _replay(self, step: ReplayStep) -> list[BrokenRule]:
        results = [(replay, list(step(replay))) for replay in self._replays]
        if fitting := [replay for replay, faults in results if not faults]:
            self._replays = fitting
            return []
        return results[0][1]

    def _replay_outcome(
        self, number: int, outcome: RegistrationOutcome | None, step: ReplayStep
    ) -> Iterator[BrokenRule]:
        faults = self._replay(step)
        yield from faults
        if not outcome or all(fault.rule != "outcome" for fault in faults) or not self._forks_left:
            return
        self._forks_left -= 1
        for replay in [*self._replays]:
            for lawful_outcome in replay.expected_outcomes:
                if lawful_outcome != outcome and replay.status(number) == outcome:
                    corrected_replay = copy.deepcopy(replay)
                    corrected_replay.correct(number, outcome, lawful_outcome)
                    self._replays.append(corrected_replay)
        del self._replays[MAX_REPLAYS:]
