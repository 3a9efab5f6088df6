"""Drafts and withdrawn events are at no public address and in no stream.

Every route of the service is read. A new one needs an entry in `ABOUT_EVENTS`, or in `ABOUT_OTHER_THINGS`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import httpx2
import pytest

from holdfast.events.api import OPERATIONS
from holdfast.events.organizers import accounts
from holdfast.events.pages.cover import cover_path
from holdfast.events.service import EVENTS
from holdfast.events.texts.rendered_text import one_line
from holdfast_verify.audit.audit import Audit
from holdfast_verify.formats.tree import parse_bundle
from tests.events.log.log_scene import seal_logs
from tests.helpers.events_service import Client, Service, publish_event
from tests.helpers.exchange import read_stream
from tests.helpers.photos import accept_photos, key_of

DRAFT, WITHDRAWN, CANCELLED = "Draft", "Withdrawn", "Cancelled"

MARKS = ("Hidden", "kept-secret", "71717")
"""What only an organizer knows: parts of titles and texts, and the number of seats."""

Statuses = Mapping[str, int]

NOT_FOUND: Statuses = {DRAFT: 404, WITHDRAWN: 404}

ABOUT_EVENTS: Mapping[str, Statuses] = {
    "/organizers/{slug}/events/{event_id}": {**NOT_FOUND, CANCELLED: 200},
    "/events/{event_id}": {**NOT_FOUND, CANCELLED: 303},
    "/events/{event_id}/preview/{signature}": {**NOT_FOUND, CANCELLED: 404},
    "/events/{event_id}/registrations": {**NOT_FOUND, CANCELLED: 303},
    "/events/{event_id}/released": {**NOT_FOUND, CANCELLED: 303},
    "/events/{event_id}/embed/released": {**NOT_FOUND, CANCELLED: 303},
    "/events/{event_id}/embed": {**NOT_FOUND, CANCELLED: 200},
    "/events/{event_id}/cover-{version}.png": {**NOT_FOUND, CANCELLED: 200},
    "/events/{event_id}/calendar.ics": {**NOT_FOUND, CANCELLED: 200},
    "/events/{event_id}/stream": {**NOT_FOUND, CANCELLED: 200},
    "/events/{event_id}/embed/stream": {**NOT_FOUND, CANCELLED: 200},
    "/organizers/{slug}": {DRAFT: 200, WITHDRAWN: 200, CANCELLED: 200},
    "/organizers/{slug}/events": {DRAFT: 303, WITHDRAWN: 303, CANCELLED: 303},
    "/organizers/{slug}/events.ics": {DRAFT: 200, WITHDRAWN: 200, CANCELLED: 200},
    "/organizers/{slug}/events.rss": {DRAFT: 200, WITHDRAWN: 200, CANCELLED: 200},
    # A log that was public is not withdrawn. It has nothing about a draft.
    **{
        f"/log/events/{{id}}{generation}{path}": {DRAFT: 404, WITHDRAWN: status, CANCELLED: status}
        for generation in ("", "/{generation}")
        for path, status in (
            ("/checkpoint", 200),
            ("/key", 200),
            ("/proofs/{number}", 404),
            ("/head-proof", 200),
            ("/freeze-proof", 404),
            ("/tile/{tile:path}", 200),
        )
    },
    # A photo is found by its key alone, which nobody can guess: it was shown to those who know it.
    "/media/{key:path}": {DRAFT: 200, WITHDRAWN: 200, CANCELLED: 200},
}
"""The routes that say something about events, with the status of the answer to anybody."""

STREAMS = {"/organizers/{slug}/stream"}
"""Routes about events that answer with a stream without an end."""

ABOUT_OTHER_THINGS = (
    *(
        "/assets/",
        "/accents/",
        "/.well-known/",
        "/oauth/",
        "/sign-",
        "/mails/",
        "/queues/",
        "/log/queues/",
        "/log/heads/",
    ),
    *("/console", "/account", "/people/", "/payouts/", "/uploads/", "/mcp/", "/stripe/", "/log/keys", "/token"),
    # Behind a signed link to one registration, which a draft does not have.
    *("/registrations/{link}", "/robots.txt", "/llms.txt", "/agents.md", "/docs", "/api", "/openapi.json", "/verify"),
    *("/embed.js", "/agents", "/developers", "/registrations/push-worker.js"),
)
"""Prefixes of the routes that say nothing about events, or only to those who are signed in or have a signed link."""


class PublicEventScene(NamedTuple):
    """An organizer with an event of each kind, and another organizer."""

    service: Service
    ada: Client
    ben: Client
    events: dict[str, dict[str, Any]]
    keys: dict[str, str]


@pytest.fixture
async def scene(service: Service) -> PublicEventScene:
    ada, ben = await service.organizer(), await service.organizer()
    secrets: dict[str, Any] = {"title": "Hidden event", "body": "kept-secret", "capacity": 71717}
    keys = {kind: key_of(ada.id, letter) for kind, letter in ((DRAFT, "d"), (WITHDRAWN, "w"), (CANCELLED, "c"))}
    await accept_photos(service, *keys.values())
    events = {
        DRAFT: await ada.create_event(**secrets, published=False, image_keys=[keys[DRAFT]]),
        WITHDRAWN: await ada.create_event(title="Shown event", image_keys=[keys[WITHDRAWN]]),
        CANCELLED: await ada.create_event(title="Shown event", image_keys=[keys[CANCELLED]]),
    }
    await seal_logs(service)
    await ada.delete(f"/api/events/{events[CANCELLED]['id']}")
    await publish_event(ada, events[WITHDRAWN], False)
    for kind in (WITHDRAWN, DRAFT):
        await publish_event(ada, events[kind], False, **secrets, location_name="kept-secret studio")
    await seal_logs(service)
    return PublicEventScene(service, ada, ben, events, keys)


def routes(service: Service) -> list[str]:
    return [route.path for route in EVENTS.build(service.database).endpoints.routes]


def filled_path(path: str, scene: PublicEventScene, kind: str) -> str:
    event = scene.events[kind]
    values = {
        "{slug}": scene.ada.slug,
        "{event_id}": event["id"],
        "{id}": event["id"],
        "{generation}": 1,
        "{number}": 1,
        "{tile:path}": "entries/000.p/2",
        "{key:path}": scene.keys[kind],
        "/events/{event_id}/cover-{version}.png": cover_path(event["id"], one_line("Shown event")),
    }
    if path in values:
        return str(values[path])
    return re.sub(r"\{[^}]*\}", lambda field: str(values.get(field[0], "x")), path)


def marks(answer: httpx2.Response) -> list[str]:
    return [mark for mark in MARKS if mark in answer.text]


def faults(checkpoint: str, entries: bytes) -> list[str]:
    """What an audit finds in the entries of a log."""
    audit = Audit(checkpoint.partition("\n")[0])
    for entry in parse_bundle(entries):
        audit.read(entry)
    audit.end()
    return [finding.message for finding in audit.findings]


async def test_every_public_route_is_listed_as_about_events_or_not(service: Service) -> None:
    known_paths = {*ABOUT_EVENTS, *STREAMS, "/"}

    assert [
        path for path in routes(service) if path not in known_paths and not path.startswith(ABOUT_OTHER_THINGS)
    ] == []
    assert {*known_paths} <= {*routes(service)}


@pytest.mark.parametrize("kind", [DRAFT, WITHDRAWN, CANCELLED])
async def test_no_public_address_shows_a_draft_or_withdrawn_event(scene: PublicEventScene, kind: str) -> None:
    for path in routes(scene.service):
        if path in STREAMS:
            continue
        answer = await scene.service.http.get(filled_path(path, scene, kind), follow_redirects=False)

        assert (path, marks(answer)) == (path, [])
        if path in ABOUT_EVENTS:
            assert (path, answer.status_code) == (path, ABOUT_EVENTS[path][kind])
            head = await scene.service.http.head(filled_path(path, scene, kind))
            assert (path, head.status_code) in {(path, ABOUT_EVENTS[path][kind]), (path, 405)}
    listings = [f"/organizers/{scene.ada.slug}{end}" for end in ("", "/events.rss", "/events.ics")]
    is_listed = [
        f"/events/{scene.events[kind]['id']}" in (await scene.service.http.get(path)).text for path in listings
    ]
    # A calendar learns that an event is cancelled.
    assert is_listed == [False, False, kind == CANCELLED]


@pytest.mark.parametrize("kind", [DRAFT, WITHDRAWN, CANCELLED])
async def test_no_operation_shows_an_event_to_another_organizer(scene: PublicEventScene, kind: str) -> None:
    for operation in OPERATIONS:
        path = re.sub(r"\{event_id\}", str(scene.events[kind]["id"]), operation.path)
        path = re.sub(r"\{[^}]*\}", "1", path)
        for answer in (
            await scene.ben.request(operation.method, path, {}),
            await scene.service.http.request(operation.method, path, json={}),
        ):
            assert (operation.name, marks(answer), "Shown event" in answer.text) == (operation.name, [], False)
            if "{event_id}" in operation.path:
                assert answer.status_code in {401, 403, 404, 422}


async def test_the_log_of_a_withdrawn_event_stays_and_has_nothing_of_the_draft(scene: PublicEventScene) -> None:
    path = f"/log/events/{scene.events[WITHDRAWN]['id']}"

    checkpoint = (await scene.service.http.get(f"{path}/checkpoint")).text
    size = int(checkpoint.split("\n")[1])
    bundle = await scene.service.http.get(f"{path}/tile/entries/000.p/{size}", headers={"accept-encoding": "identity"})
    entries = [json.loads(entry) for entry in parse_bundle(bundle.content)]

    assert faults(checkpoint, bundle.content) == []
    assert [(entry["kind"], entry.get("reason")) for entry in entries if entry["kind"] != "seal"] == [
        ("open", None),
        ("close", "draft"),
    ]


async def test_a_further_log_begins_when_the_draft_is_published_again(scene: PublicEventScene) -> None:
    event = scene.events[WITHDRAWN]
    path = f"/log/events/{event['id']}"
    await publish_event(scene.ada, event, capacity=5)
    await scene.ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 6}})
    await seal_logs(scene.service)

    checkpoint = (await scene.service.http.get(f"{path}/checkpoint")).text
    [origin, size, *_] = checkpoint.split("\n")
    bundle = await scene.service.http.get(f"{path}/tile/entries/000.p/{size}", headers={"accept-encoding": "identity"})
    entries = [json.loads(entry) for entry in parse_bundle(bundle.content)]

    assert faults(checkpoint, bundle.content) == []
    assert origin == f"events.test{path}/2"
    assert [(entry["kind"], entry.get("capacity")) for entry in entries if entry["kind"] != "seal"] == [
        ("open", 5),
        ("change", 6),
    ]
    assert (await scene.service.http.get(f"{path}/1/checkpoint")).status_code == 200


@pytest.mark.parametrize("form", ["", "/embed"])
async def test_the_streams_of_an_event_end_when_it_becomes_a_draft(service: Service, form: str) -> None:
    ada = await service.organizer()
    event = await ada.create_event(title="Shown event")
    address = f"http://events.test/events/{event['id']}{form}/stream"

    async with read_stream(service.app, address) as reader, read_stream(service.app, f"{address}?lang=de") as other:
        await reader.next()
        await publish_event(ada, event, False)
        await reader.wait_until_closed()
        await other.wait_until_closed()
        await publish_event(ada, event, False, title="Hidden event", capacity=71717)
        late = await service.http.get(address)

        assert late.status_code == 404
        assert "Hidden" not in reader.sent + other.sent
        assert "71717" not in reader.sent + other.sent
        assert ("event: changed" in reader.sent) == (not form)

    await publish_event(ada, event, True, title="Shown again")
    async with read_stream(service.app, address) as reader:
        assert (await reader.next())["event"] == "numbers"


async def test_the_stream_of_an_organizer_tells_nothing_of_its_drafts(service: Service) -> None:
    ada = await service.organizer()
    public_event, draft = await ada.create_event(title="Shown event"), await ada.create_event(published=False)
    address = f"http://events.test/organizers/{ada.slug}/stream"

    async def changes(*events: dict[str, Any]) -> int:
        """How many changes a reader is told while events are changed, and then the shown one."""
        async with read_stream(service.app, address) as reader:
            for number, event in enumerate(events):
                await ada.patch(f"/api/events/{event['id']}", {"event": {"capacity": 20 + number}})
                await service.run_sql("update photos set widths = widths")
                await wait_for_changes(service)
            await ada.patch(f"/api/events/{public_event['id']}", {"event": {"location_name": f"Studio {len(events)}"}})
            await reader.next()
            await wait_for_changes(service)
            return reader.sent.count("event: changed")

    assert await changes() == 1
    assert await changes(draft, draft) == 1
    assert await changes(public_event) == 2
    async with read_stream(service.app, address) as reader:
        await publish_event(ada, public_event, False)
        assert (await reader.next())["event"] == "changed"


async def wait_for_changes(service: Service) -> None:
    """Wait until what was announced before has been told: a change of another organizer's event is told after it."""
    ben = await service.organizer()
    event = await ben.create_event()
    async with read_stream(service.app, f"http://events.test/organizers/{ben.slug}/stream") as reader:
        await ben.patch(f"/api/events/{event['id']}", {"event": {"capacity": 11}})
        await reader.next()


async def test_the_events_of_an_erased_organizer_are_as_public_as_before(service: Service) -> None:
    eve = await service.organizer(is_proved=False)
    draft = await eve.create_event(title="Hidden event", published=False)
    public_event = await eve.create_event(title="Shown event")
    await seal_logs(service)

    async with service.database.transaction() as tx:
        assert await accounts.lock_unproved(tx, eve.id)
        await accounts.end_unproved(tx, eve.id, None)
    [(slug,)] = await service.run_sql("select slug from users where id = %(id)s", id=eve.id)

    for id, status in ((draft["id"], 404), (public_event["id"], 200)):
        page = await service.http.get(f"/organizers/{slug}/events/{id}")
        calendar = await service.http.get(f"/events/{id}/calendar.ics")
        log = await service.http.get(f"/log/events/{id}/checkpoint")
        assert (page.status_code, calendar.status_code, log.status_code) == (status, status, status)
        assert marks(page) == []
    for end in ("", "/events.ics", "/events.rss", "/stream"):
        for of in (slug, eve.slug):
            assert (await service.http.get(f"/organizers/{of}{end}")).status_code == 404
