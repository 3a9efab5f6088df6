"""What people do who register while everything fails, and whether the order of arrival explains the answers."""

import itertools
from collections import defaultdict
from typing import Any

import psycopg

from tests.helpers.events_service import Client, eventually
from tests.models.crowd_client import AnyClient
from tests.models.history import SOAK, History, SentRequest, agree, never_inverted, nothing_of_refused
from tests.models.registrations import Event, Registrations

EVENT_COUNT = 2_000 if SOAK else 200

SEATS, PLACES, TRIES = 8, 4, 16
"""The capacity of each event, that of its waiting list, and how many people register one after the other."""


async def create_events(ada: Client, count: int = EVENT_COUNT) -> list[int]:
    """The ids of new events of an organizer."""
    return [(await ada.create_event(capacity=SEATS, waitinglist_capacity=PLACES))["id"] for _ in range(count)]


def list_registrations(database_url: str) -> list[tuple[str, int, str]]:
    """Person, event and status of every registration, in order of arrival."""
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            """
            select email, event_id, status::text from registrations join users on users.id = user_id
             order by received_at, arrival
            """
        ).fetchall()


class People:
    """People who register for events, one event after the other, and look at what came of some registrations."""

    def __init__(self, history: History, events: list[int]) -> None:
        self.history = history
        self._events = events
        self._numbers = itertools.count()
        self._polls: list[tuple[str, str]] = []

    async def come(self, http: AnyClient, _: int) -> None:
        number, ask = next(self._numbers), self.history.ask
        person, event = f"n{number}@example.com", self._events[number // TRIES % len(self._events)]
        body = {"registration": {"event_id": event, "email": person}}
        options: dict[str, Any] = {"json": body, "headers": {"Idempotency-Key": person}}
        exchange = await ask(http, ("register", person, event), "POST", "/api/registrations", **options)
        if exchange.answer and exchange.answer.status_code == 202:
            self._polls.append((person, exchange.answer.json()["next"]["url"]))
        if self._polls:
            person, url = self.history.chance.choice(self._polls[-50:])
            await ask(http, ("look", person, url), "GET", url)


async def wait_until_settled(database_url: str) -> None:
    """When every registration has its outcome."""
    await eventually(lambda: "pending" not in {status for _, _, status in list_registrations(database_url)}, seconds=60)


def explain_answers(exchanges: list[SentRequest], published: list[tuple[str, int, str]]) -> None:
    """Fail unless the registrations, in their order, explain every answer."""
    registered = {exchange.request[1]: exchange for exchange in exchanges if exchange.request[0] == "register"}
    accepted = {
        person for person, exchange in registered.items() if exchange.answer and exchange.answer.status_code == 202
    }
    statuses = {person: status for person, _, status in published}
    nothing_of_refused(registered.values(), statuses)
    agree(accepted <= statuses.keys(), f"{sorted(accepted - statuses.keys())[:5]} were accepted, and are not there")
    never_inverted(registered[person] for person, _, _ in published)

    models: defaultdict[int, Registrations] = defaultdict(lambda: Registrations([Event(SEATS, PLACES, 0)]))
    line: defaultdict[int, list[SentRequest]] = defaultdict(list)
    for person, event, _ in published:
        models[event].register(0, person)
        line[event].append(registered[person])
    for model in models.values():
        model.settle()
        for registration in model.registrations:
            status = statuses[registration.person]
            agree(
                status == registration.status,
                f"{registration.person} is {status}, and by order of arrival {registration.status}",
            )
    for exchange in registered.values():
        if exchange.answer and exchange.answer.status_code != 202:
            before = sum(other.sent < exchange.answered for other in line[exchange.request[2]])
            agree(exchange.answer.json()["code"] == "event_full", exchange.answer.text)
            agree(before >= SEATS + PLACES, f"{exchange.request}: the event was full after {before} people")
    _looks_are_explained(
        [exchange for exchange in exchanges if exchange.request[0] == "look" and exchange.answer], statuses
    )


def _looks_are_explained(looks: list[SentRequest], statuses: dict[str, str]) -> None:
    """Every answer is the outcome, or that it is not known yet; never that after the outcome."""
    known: dict[str, float] = {}
    for look in sorted(looks, key=lambda look: look.answered):
        _, person, url = look.request
        body = look.answer.json()
        status = body["data"]["status"] if "data" in body else body["code"].removeprefix("registration_")
        if status == "pending":
            agree(known.get(person, look.sent) >= look.sent, f"{url} was settled, and pending later")
        else:
            agree(status == statuses[person], f"{url} was told {status}, and is {statuses[person]}")
            known.setdefault(person, look.answered)
