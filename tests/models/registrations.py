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
    """One person at one event."""

    event: int
    person: str
    amount: int
    arrival: int
    status: str = "pending"
    reason: str | None = None


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
        """Give everybody who waits for it an outcome, in order of arrival; how many got one."""
        waiting = [each for each in self.line if each.status == "pending"]
        for each in waiting:
            at = self.events[each.event]
            if at.cancelled:
                each.status, each.reason = "rejected", "event_cancelled"
            elif self._count(each.event, "registered") < at.seats:
                each.status = "registered"
            elif self._count(each.event, "waitlisted") < at.places:
                each.status = "waitlisted"
            else:
                each.status, each.reason = "rejected", "event_full"
        return len(waiting)

    def get(self, event: int, person: str) -> Answer | str:
        found = self._settled(event, person)
        return found if isinstance(found, str) else _shown(found)

    def change(self, event: int, person: str, status: str | None, amount: int | None) -> Answer | str:
        """Move somebody by hand, or set what was paid."""
        found = self._settled(event, person)
        if isinstance(found, str):
            return found
        moved = status is not None and status != found.status
        if moved and status == "registered" and self._count(event, "registered") >= self.events[event].seats:
            return "event_full"
        found.status = status or found.status
        found.amount = found.amount if amount is None else amount
        if moved and status == "waitlisted":
            self._promote(event, but=found)
        return _shown(found)

    def remove(self, event: int, person: str) -> str | None:
        found = self._settled(event, person)
        if isinstance(found, str) and found != "registration_pending":
            return found
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
        at, taken = self.events[event], self._count(event, "registered")
        status = "cancelled" if at.cancelled else "expired" if at.past else "full" if taken >= at.seats else "active"
        return {"status": status, "registration_count": taken, "capacity": at.seats, "price": at.price}

    def list(self) -> list[Answer]:
        return [_shown(each) for each in self.line if each.status in {"registered", "waitlisted"}]

    def _promote(self, event: int, but: Registration | None = None) -> None:
        """Give free seats to the first on the waiting list."""
        at = self.events[event]
        waiting = self._waiting(event, but)
        while not at.cancelled and not at.past and self._count(event, "registered") < at.seats:
            first = next(waiting, None)
            if first is None:
                return
            first.status = "registered"

    def _waiting(self, event: int, but: Registration | None) -> Iterator[Registration]:
        return iter([each for each in self.line if each.event == event and each.status == "waitlisted" and each != but])

    def _settled(self, event: int, person: str) -> Registration | str:
        found = self._find(event, person)
        if found is None:
            return "not_found"
        refusals = {"pending": "registration_pending", "rejected": f"registration_rejected {found.reason}"}
        return refusals.get(found.status, found)

    def _find(self, event: int, person: str) -> Registration | None:
        return next((each for each in self.line if (each.event, each.person) == (event, person)), None)

    def _count(self, event: int, status: str) -> int:
        return sum(each.event == event and each.status == status for each in self.line)


def _shown(found: Registration) -> Answer:
    return {"event": found.event, "person": found.person, "status": found.status, "amount_paid": found.amount}
