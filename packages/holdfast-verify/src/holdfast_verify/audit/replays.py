"""The replay of places, and after a wrong outcome also the one that goes on as the rules demand.

What follows a wrong outcome may have been logged as if it were right. Then each later entry would look wrong too. So an
entry is only a further fault if it fits none of the replays; those that it does not fit end when it fits another one.
"""

import copy
from collections.abc import Callable, Iterator

from holdfast_verify.audit.entries import ChangeEntry, OpenEntry, RegistrationOutcome
from holdfast_verify.audit.places import BrokenRule, PlaceReplay

MAX_REPLAYS = 6
"""Replays that go on side by side."""

MAX_FORKS = 20
"""Wrong outcomes after which a replay goes on as the rules demand. Each copies what it knows of all arrivals."""

ReplayStep = Callable[[PlaceReplay], Iterator[BrokenRule]]


class PlaceReplays:
    """Replays the arrivals and changes of one event. `main` is the replay that the log fits best."""

    def __init__(self, entry: OpenEntry) -> None:
        self._replays = [PlaceReplay(entry)]
        self._forks_left = MAX_FORKS

    @property
    def main(self) -> PlaceReplay:
        return self._replays[0]

    def arrive(self, number: int, outcome: RegistrationOutcome | None) -> Iterator[BrokenRule]:
        """Replay an arrival, which has the next number. Who waits for a draw has no outcome yet."""
        yield from self._read_outcome(number, outcome, lambda replay: replay.arrive(number, outcome))

    def place(self, number: int, outcome: RegistrationOutcome) -> Iterator[BrokenRule]:
        """Replay an outcome after a draw."""
        yield from self._read_outcome(number, outcome, lambda replay: replay.place(number, outcome))

    def change(self, entry: ChangeEntry) -> Iterator[BrokenRule]:
        """Replay a change of the event, or of the place of a person."""
        yield from self._read(lambda replay: replay.change(entry))

    def end_changes(self) -> Iterator[BrokenRule]:
        """Judge the changes since the last arrival."""
        yield from self._read(PlaceReplay.end_changes)

    def end_draw(self) -> None:
        """The draw was made: places are given now."""
        for replay in self._replays:
            replay.awaits_draw = False

    def _read(self, step: ReplayStep) -> list[BrokenRule]:
        results = [(replay, list(step(replay))) for replay in self._replays]
        if fitting := [replay for replay, faults in results if not faults]:
            self._replays = fitting
            return []
        return results[0][1]

    def _read_outcome(self, number: int, outcome: RegistrationOutcome | None, step: ReplayStep) -> Iterator[BrokenRule]:
        faults = self._read(step)
        yield from faults
        if not outcome or all(fault.rule != "outcome" for fault in faults) or not self._forks_left:
            return
        self._forks_left -= 1
        for replay in [*self._replays]:
            for lawful_outcome in replay.expected_outcomes:
                if lawful_outcome != outcome and replay.status(number) == outcome:
                    lawful = copy.deepcopy(replay)
                    lawful.correct(number, outcome, lawful_outcome)
                    self._replays.append(lawful)
        del self._replays[MAX_REPLAYS:]
