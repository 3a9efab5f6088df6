"""People register through two processes while everything fails: the order of arrival explains every answer."""

import itertools
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx2
import psycopg

from tests.faults.processes import serving
from tests.models.history import SOAK, Asked, History, agree, never_inverted
from tests.models.registrations import Event, Registrations
from tests.support import event_fields, eventually

EVENTS = 2_000 if SOAK else 200
SEATS, PLACES, TRIES = 8, 4, 16
"""Of each event: its capacity, that of its waiting list, and how many people register one after the other."""


async def organizer(url: str) -> tuple[dict[str, str], list[int]]:
    """The headers of an organizer, and its events."""
    async with httpx2.AsyncClient(base_url=url, timeout=30) as http:
        body = {"organizer": {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events"}}
        key = (await http.post("/api/organizers/register", json=body)).json()["data"]["api_key"]["key"]
        event = {"event": event_fields(capacity=SEATS, waitinglist_capacity=PLACES)}
        made = [await http.post("/api/events", json=event, headers={"X-API-Key": key}) for _ in range(EVENTS)]
    return {"X-API-Key": key}, [each.json()["data"]["id"] for each in made]


def registrations(database_url: str) -> list[tuple[str, int, str]]:
    """Person, event and status of every registration, in order of arrival."""
    with psycopg.connect(database_url) as connection:
        return connection.execute(
            """
            select email, event_id, status::text from registrations join users on users.id = user_id
             order by received_at, arrival
            """
        ).fetchall()


async def test_the_order_of_arrival_explains_every_answer(crashing_url: str, tmp_path: Path) -> None:
    with serving(crashing_url, tmp_path, 2) as processes:
        headers, events = await organizer(processes[0].url)
        history = History(processes, crashing_url, headers)
        numbers = itertools.count()
        polls: list[tuple[str, str]] = []

        async def client(http: httpx2.AsyncClient, _: int) -> None:
            number = next(numbers)
            person, event = f"n{number}@example.com", events[number // TRIES % EVENTS]
            body = {"registration": {"event_id": event, "email": person}}
            options: dict[str, Any] = {"json": body, "headers": {"Idempotency-Key": person}}
            asked = await history.ask(http, ("register", person, event), "POST", "/api/registrations", **options)
            if asked.answer.status_code == 202:
                polls.append((person, asked.answer.json()["next"]["url"]))
            if polls:
                person, url = history.chance.choice(polls[-50:])
                await history.ask(http, ("look", person, url), "GET", url)

        await history.run(client)

        async def all_are_settled() -> bool:
            return "pending" not in {status for _, _, status in registrations(crashing_url)}

        await eventually(all_are_settled, seconds=60)

    explain(history.asked, registrations(crashing_url))


def explain(asked: list[Asked], published: list[tuple[str, int, str]]) -> None:
    """Fail unless the registrations, in their order, explain what everybody was told."""
    registered = {each.request[1]: each for each in asked if each.request[0] == "register"}
    accepted = {person for person, each in registered.items() if each.answer and each.answer.status_code == 202}
    found = {person: status for person, _, status in published}
    agree(accepted <= found.keys(), f"{sorted(accepted - found.keys())[:5]} were accepted, and are not there")
    never_inverted(registered[person] for person, _, _ in published)

    models: defaultdict[int, Registrations] = defaultdict(lambda: Registrations([Event(SEATS, PLACES, 0)]))
    line: defaultdict[int, list[Asked]] = defaultdict(list)
    for person, event, _ in published:
        models[event].register(0, person)
        line[event].append(registered[person])
    for model in models.values():
        model.settle()
        for each in model.line:
            status = found[each.person]
            agree(status == each.status, f"{each.person} is {status}, and by order of arrival {each.status}")
    for each in registered.values():
        if each.answer and each.answer.status_code != 202:
            before = sum(other.sent < each.answered for other in line[each.request[2]])
            agree(each.answer.json()["code"] == "event_full", each.answer.text)
            agree(before >= SEATS + PLACES, f"{each.request}: the event was full after {before} people")
    _looks_are_explained([each for each in asked if each.request[0] == "look" and each.answer], found)


def _looks_are_explained(looks: list[Asked], found: dict[str, str]) -> None:
    """What somebody was told is the outcome, or that it is not known yet; never that after the outcome."""
    known: dict[str, float] = {}
    for each in sorted(looks, key=lambda asked: asked.answered):
        _, person, url = each.request
        body = each.answer.json()
        told = body["data"]["status"] if "data" in body else body["code"].removeprefix("registration_")
        if told == "pending":
            agree(known.get(person, each.sent) >= each.sent, f"{url} was settled, and pending later")
        else:
            agree(told == found[person], f"{url} was told {told}, and is {found[person]}")
            known.setdefault(person, each.answered)
