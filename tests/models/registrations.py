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
    registrations: list[Registration] = field(default_factory=list[Registration])
    arrivals: int = 0
    keys: Keys = field(default_factory=Keys)

    def register(self, event: int, person: str, amount: int | None = None, key: str | None = None, by: str = "") -> Any:
        """Register a person. `by` says how the person was named: with a key it is part of the request."""
        return self.keys.once(key, (event, person, amount, by), lambda: self._accept(event, person, amount))

    def _accept(self, event: int, person: str, amount: int | None) -> Answer | str:
        details = self.events[event]
        if details.cancelled:
            return "event_cancelled"
        if details.past:
            return "event_expired"
        earlier = self._find(event, person)
        if earlier and earlier.status != "rejected":
            return {"accepted": person}
        if self._count(event, "registered") >= details.seats and self._count(event, "waitlisted") >= details.places:
            return "event_full"
        if earlier:
            self.registrations.remove(earlier)
        self.arrivals += 1
        self.registrations.append(
            Registration(event, person, details.price if amount is None else amount, self.arrivals)
        )
        return {"accepted": person}

    def settle(self) -> int:
        """Settle all pending registrations in order of arrival. Returns their number."""
        pending = [entry for entry in self.registrations if entry.status == "pending"]
        for entry in pending:
            details = self.events[entry.event]
            if details.cancelled:
                entry.status, entry.reason = "rejected", "event_cancelled"
            elif self._count(entry.event, "registered") < details.seats:
                entry.status = "registered"
            elif self._count(entry.event, "waitlisted") < details.places:
                entry.status = "waitlisted"
            else:
                entry.status, entry.reason = "rejected", "event_full"
        return len(pending)

    def get(self, event: int, person: str) -> Answer | str:
        entry = self._settled(event, person)
        return entry if isinstance(entry, str) else _answer(entry)

    def change(self, event: int, person: str, status: str | None, amount: int | None) -> Answer | str:
        """Move a person by hand, or set what was paid."""
        entry = self._settled(event, person)
        if isinstance(entry, str):
            return entry
        is_moved = status is not None and status != entry.status
        if is_moved and status == "registered" and self._count(event, "registered") >= self.events[event].seats:
            return "event_full"
        entry.status = status or entry.status
        entry.amount = entry.amount if amount is None else amount
        if is_moved:
            entry.by_hand = status == "waitlisted"
        if is_moved and entry.by_hand:
            self._promote(event)
        return _answer(entry)

    def remove(self, event: int, person: str) -> str | None:
        entry = self._settled(event, person)
        if isinstance(entry, str) and entry != "registration_pending":
            return entry
        registration = self._find(event, person)
        assert registration
        self.registrations.remove(registration)
        if registration.status == "registered":
            self._promote(event)
        return None

    def edit(self, event: int, *, seats: int | None, places: int | None, price: int | None, revive: bool) -> Any:
        """Change an event. `revive` gives it a date in the future."""
        details = self.events[event]
        if seats is not None and seats < self._count(event, "registered"):
            return "validation_failed"
        promotes = details.past or (seats is not None and seats > details.seats)
        details.seats = details.seats if seats is None else seats
        details.places = details.places if places is None else places
        details.price = details.price if price is None else price
        details.past = details.past and not revive
        if promotes:
            self._promote(event)
        return self.event(event)

    def cancel(self, event: int) -> Answer:
        self.events[event].cancelled = True
        return self.event(event)

    def event(self, event: int) -> Answer:
        details, count = self.events[event], self._count(event, "registered")
        status = (
            "cancelled"
            if details.cancelled
            else "expired"
            if details.past
            else "full"
            if count >= details.seats
            else "active"
        )
        return {"status": status, "registration_count": count, "capacity": details.seats, "price": details.price}

    def list(self) -> list[Answer]:
        return [_answer(entry) for entry in self.registrations if entry.status in {"registered", "waitlisted"}]

    def _promote(self, event: int) -> None:
        """Give free seats to the first who wait for one."""
        details = self.events[event]
        waitlisted = self._waitlisted(event)
        while not details.cancelled and not details.past and self._count(event, "registered") < details.seats:
            first = next(waitlisted, None)
            if first is None:
                return
            first.status = "registered"

    def _waitlisted(self, event: int) -> Iterator[Registration]:
        waitlisted = [entry for entry in self.registrations if entry.event == event and entry.status == "waitlisted"]
        return iter([entry for entry in waitlisted if not entry.by_hand])

    def _settled(self, event: int, person: str) -> Registration | str:
        entry = self._find(event, person)
        if entry is None:
            return "not_found"
        refusals = {"pending": "registration_pending", "rejected": f"registration_rejected {entry.reason}"}
        return refusals.get(entry.status, entry)

    def _find(self, event: int, person: str) -> Registration | None:
        return next((entry for entry in self.registrations if (entry.event, entry.person) == (event, person)), None)

    def _count(self, event: int, status: str) -> int:
        return sum(entry.event == event and entry.status == status for entry in self.registrations)


def _answer(entry: Registration) -> Answer:
    return {"event": entry.event, "person": entry.person, "status": entry.status, "amount_paid": entry.amount}
