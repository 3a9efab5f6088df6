"""A model of registrations: one organizer's events and who registered for them, asked one request after the other.

An answer is a refusal's code, or what the model can tell of the service's answer.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.models.keys import Keys

Answer = dict[str, Any]


@dataclass
class Registration:
    """One person at one event. `by_hand`: an organizer has put the person on the waiting list."""

    event: int
    person: str
    amount: int
    arrival: int
    status: str = "pending"
    reason: str | None = None
    by_hand: bool = False


@dataclass
class Event:
    """An event. `seats` is its capacity, `places` that of its waiting list."""

    seats: int
    places: int
    price: int
    cancelled: bool = False
    past: bool = False


@dataclass
class Registrations:
    """Events, and the registrations in order of arrival."""

    events: list[Event]
    line: list[Registration] = field(default_factory=list[Registration])
    arrivals: int = 0
    keys: Keys = field(default_factory=Keys)

    def register(self, event: int, person: str, amount: int | None = None, key: str | None = None, by: str = "") -> Any:
        """Register a person. `by` says how the person was named: with a key it is part of the request."""
        return self.keys.once(key, (event, person, amount, by), lambda: self._accept(event, person, amount))

    def _accept(self, event: int, person: str, amount: int | None) -> Answer | str:
        at = self.events[event]
        if at.cancelled:
            return "event_cancelled"
        if at.past:
            return "event_expired"
        known = self._find(event, person)
        if known and known.status != "rejected":
            return {"accepted": person}
        if self._count(event, "registered") >= at.seats and self._count(event, "waitlisted") >= at.places:
            return "event_full"
        if known:
            self.line.remove(known)
        self.arrivals += 1
        self.line.append(Registration(event, person, at.price if amount is None else amount, self.arrivals))
        return {"accepted": person}

    def settle(self) -> int:
        """Settle all pending registrations in order of arrival. Returns their number."""
        waiting = [entry for entry in self.line if entry.status == "pending"]
        for entry in waiting:
            at = self.events[entry.event]
            if at.cancelled:
                entry.status, entry.reason = "rejected", "event_cancelled"
            elif self._count(entry.event, "registered") < at.seats:
                entry.status = "registered"
            elif self._count(entry.event, "waitlisted") < at.places:
                entry.status = "waitlisted"
            else:
                entry.status, entry.reason = "rejected", "event_full"
        return len(waiting)

    def get(self, event: int, person: str) -> Answer | str:
        entry = self._settled(event, person)
        return entry if isinstance(entry, str) else _answer(entry)

    def change(self, event: int, person: str, status: str | None, amount: int | None) -> Answer | str:
        """Move a person by hand, or set what was paid."""
        entry = self._settled(event, person)
        if isinstance(entry, str):
            return entry
        moved = status is not None and status != entry.status
        if moved and status == "registered" and self._count(event, "registered") >= self.events[event].seats:
            return "event_full"
        entry.status = status or entry.status
        entry.amount = entry.amount if amount is None else amount
        if moved:
            entry.by_hand = status == "waitlisted"
        if moved and entry.by_hand:
            self._promote(event)
        return _answer(entry)

    def remove(self, event: int, person: str) -> str | None:
        entry = self._settled(event, person)
        if isinstance(entry, str) and entry != "registration_pending":
            return entry
        gone = self._find(event, person)
        assert gone
        self.line.remove(gone)
        if gone.status == "registered":
            self._promote(event)
        return None

    def edit(self, event: int, *, seats: int | None, places: int | None, price: int | None, revive: bool) -> Any:
        """Change an event. `revive` gives it a date in the future."""
        at = self.events[event]
        if seats is not None and seats < self._count(event, "registered"):
            return "validation_failed"
        promotes = at.past or (seats is not None and seats > at.seats)
        at.seats = at.seats if seats is None else seats
        at.places = at.places if places is None else places
        at.price = at.price if price is None else price
        at.past = at.past and not revive
        if promotes:
            self._promote(event)
        return self.event(event)

    def cancel(self, event: int) -> Answer:
        self.events[event].cancelled = True
        return self.event(event)

    def event(self, event: int) -> Answer:
        at, count = self.events[event], self._count(event, "registered")
        status = "cancelled" if at.cancelled else "expired" if at.past else "full" if count >= at.seats else "active"
        return {"status": status, "registration_count": count, "capacity": at.seats, "price": at.price}

    def list(self) -> list[Answer]:
        return [_answer(entry) for entry in self.line if entry.status in {"registered", "waitlisted"}]

    def _promote(self, event: int) -> None:
        """Give free seats to the first who wait for one."""
        at = self.events[event]
        waiting = self._waiting(event)
        while not at.cancelled and not at.past and self._count(event, "registered") < at.seats:
            first = next(waiting, None)
            if first is None:
                return
            first.status = "registered"

    def _waiting(self, event: int) -> Iterator[Registration]:
        line = [entry for entry in self.line if entry.event == event and entry.status == "waitlisted"]
        return iter([entry for entry in line if not entry.by_hand])

    def _settled(self, event: int, person: str) -> Registration | str:
        entry = self._find(event, person)
        if entry is None:
            return "not_found"
        refusals = {"pending": "registration_pending", "rejected": f"registration_rejected {entry.reason}"}
        return refusals.get(entry.status, entry)

    def _find(self, event: int, person: str) -> Registration | None:
        return next((entry for entry in self.line if (entry.event, entry.person) == (event, person)), None)

    def _count(self, event: int, status: str) -> int:
        return sum(entry.event == event and entry.status == status for entry in self.line)


def _answer(entry: Registration) -> Answer:
    return {"event": entry.event, "person": entry.person, "status": entry.status, "amount_paid": entry.amount}
