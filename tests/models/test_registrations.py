"""Registrations behave as their model: capacity, the waiting list, moves by hand, idempotency keys."""

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.events.clock import pass_by
from tests.helpers.events_service import Service, running_events, unlimited
from tests.models.machine import SOAK, Machine, MachineStage, explore, open_stage
from tests.models.registrations import Answer, Event, Registrations

OPERATIONS = 350_000 if SOAK else 1_500

EVENTS = st.integers(0, 1)
PEOPLE = st.sampled_from("abcdef")
KEYS = st.none() | st.sampled_from(["one", "two"])
AMOUNTS = st.none() | st.integers(0, 3)
ASKED = st.tuples(EVENTS, PEOPLE, AMOUNTS)

EVENT = ("status", "registration_count", "capacity", "price")
"""What is compared of an event."""

numbers = itertools.count(1)


class RegistrationMachine(Machine):
    """An organizer with two events, and six people who register for them."""

    def __init__(self, stage: MachineStage[Service]) -> None:
        super().__init__()
        self.stage = stage
        self.number = next(numbers)
        self.handles: dict[str, str] = {}

    @initialize(sizes=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), min_size=2, max_size=2))
    def begin(self, sizes: list[tuple[int, int]]) -> None:
        self.stage.run(self.stage.service.settle())  # what an earlier example left
        self.ada = self.stage.run(self.stage.service.organizer())
        self.ids = [self._create(seats, places) for seats, places in sizes]
        self.model = Registrations([Event(seats, places, price=7) for seats, places in sizes])
        self.register_together([(0, person, None) for person in "abcde"])
        self.settle()

    def _create(self, seats: int, places: int) -> int:
        fields = {"capacity": seats, "waitinglist_capacity": places, "pricing_mode": "fixed", "price": 7}
        return self.stage.run(self.ada.create_event(**fields))["id"]

    @rule(event=EVENTS, person=PEOPLE, amount=AMOUNTS, key=KEYS, by_handle=st.booleans())
    def register(self, event: int, person: str, amount: int | None, key: str | None, by_handle: bool) -> None:
        by_handle = by_handle and any(registration.person == person for registration in self.model.registrations)
        fields = {"user_id": self.handles[person]} if by_handle else {}
        actual = self.stage.run(self._ask_to_register(event, person, amount, key, **fields))
        by = "handle" if by_handle else "email"
        self.agree(f"{person} for event {event}", actual, self.model.register(event, person, amount, key, by))

    @rule(requests=st.lists(ASKED, min_size=2, max_size=4))
    def register_together(self, requests: list[tuple[int, str, int | None]]) -> None:
        """Several at once share a statement. They arrive in the order in which they were sent."""
        answers = self.stage.run_together(*(self._ask_to_register(*request) for request in requests))
        self.agree(requests, answers, [self.model.register(*request) for request in requests])

    @rule(event=EVENTS)
    def register_a_stranger(self, event: int) -> None:
        actual = self.stage.run(self._ask_to_register(event, user_id="aaaaaaaa"))
        at = self.model.events[event]
        refusal = "event_cancelled" if at.cancelled else "event_expired" if at.past else "validation_failed"
        self.agree("a handle that nobody has", actual, refusal)

    @rule()
    def settle(self) -> None:
        self.agree("settlement", self.stage.run(self.stage.service.settle()), self.model.settle())

    @rule(event=EVENTS, person=PEOPLE)
    def look(self, event: int, person: str) -> None:
        actual = self._as_model(self.stage.run(self.ada.get(self._path(event, person))))
        self.agree(f"{person} at event {event}", actual, self.model.get(event, person))

    @rule(
        event=EVENTS,
        person=PEOPLE,
        status=st.sampled_from([None, "registered", "waitlisted", "waitlisted"]),
        amount=AMOUNTS,
    )
    def change(self, event: int, person: str, status: str | None, amount: int | None) -> None:
        fields = {"status": status, "amount_paid": amount}
        body = {"registration": {name: value for name, value in fields.items() if value is not None}}
        actual = self._as_model(self.stage.run(self.ada.patch(self._path(event, person), body)))
        self.agree(f"{person} at event {event}, {body}", actual, self.model.change(event, person, status, amount))

    @rule(event=EVENTS, person=PEOPLE)
    def remove(self, event: int, person: str) -> None:
        actual = self._as_model(self.stage.run(self.ada.delete(self._path(event, person))))
        self.agree(f"{person} leaves event {event}", actual, self.model.remove(event, person))

    @rule(
        event=EVENTS,
        seats=st.none() | st.integers(1, 5),
        places=st.none() | st.integers(0, 3),
        price=st.none() | st.integers(1, 9),
        revive=st.booleans(),
    )
    def edit(self, event: int, seats: int | None, places: int | None, price: int | None, revive: bool) -> None:
        later = (datetime.now(UTC) + timedelta(days=20)).isoformat() if revive else None
        fields = {"capacity": seats, "waitinglist_capacity": places, "price": price, "datetime": later}
        body = {"event": {name: value for name, value in fields.items() if value is not None}}
        actual = self._as_model(self.stage.run(self.ada.patch(f"/api/events/{self.ids[event]}", body)))
        expected = self.model.edit(event, seats=seats, places=places, price=price, revive=revive)
        self.agree(f"event {event}, {body}", actual, expected)

    @precondition(lambda self: self.model.arrivals > 8)
    @rule(event=EVENTS, cancels=st.booleans())
    def end(self, event: int, cancels: bool) -> None:
        """The event is cancelled, or takes place."""
        path = f"/api/events/{self.ids[event]}"
        if cancels:
            actual = self._as_model(self.stage.run(self.ada.delete(path)))
            self.agree(f"event {event} is cancelled", actual, self.model.cancel(event))
        else:
            self.stage.run(pass_by(self.stage.service, self.ids[event], timedelta(days=40)))
            self.model.events[event].past = True
            self.agree(f"event {event}", self._as_model(self.stage.run(self.ada.get(path))), self.model.event(event))

    @rule()
    def list(self) -> None:
        answer = self.stage.run(self.ada.get("/api/registrations", params={"limit": 100}))
        self.agree(
            "the list",
            [self._registration_of(registration) for registration in answer.json()["data"]],
            self.model.list(),
        )

    def _path(self, event: int, person: str) -> str:
        return f"/api/registrations/{self.ids[event]}/{self.handles.get(person, 'bbbbbbbb')}"

    async def _ask_to_register(
        self, event: int, person: str = "", amount: int | None = None, key: str | None = None, **named: str
    ) -> Answer | str | None:
        fields: dict[str, Any] = {"event_id": self.ids[event], **named}
        if not named:
            fields["email"] = f"{person}{self.number}@example.com"
        if amount is not None:
            fields["amount_paid"] = amount
        headers = {"Idempotency-Key": key} if key else {}
        answer = await self.ada.post("/api/registrations", {"registration": fields}, headers=headers)
        if answer.status_code != 202:
            return self._as_model(answer)
        handle = answer.json()["next"]["url"].rpartition("/")[2]
        return {"accepted": person if self.handles.setdefault(person, handle) == handle else handle}

    def _as_model(self, answer: httpx2.Response) -> Answer | str | None:
        """What an answer says, in the words of the model."""
        if answer.status_code == 204:
            return None
        body = answer.json()
        if "code" in body:
            return f"{body['code']} {body['reason']}" if "reason" in body else body["code"]
        data = body["data"]
        return self._registration_of(data) if "received_at" in data else {name: data[name] for name in EVENT}

    def _registration_of(self, data: Answer) -> Answer:
        person = next((person for person, handle in self.handles.items() if handle == data["user_id"]), None)
        event = self.ids.index(data["event_id"])
        return {"event": event, "person": person, "status": data["status"], "amount_paid": data["amount_paid"]}


def test_registrations_are_answered_as_their_model_says(database_url: str, tmp_path: Path) -> None:
    with open_stage(running_events(unlimited(database_url, tmp_path))) as stage:
        explore(stage, lambda: RegistrationMachine(stage), OPERATIONS)
