"""Through no tool does an organizer reach what belongs to another: not to see it, not to touch it, not to probe for it.

Every tool is tried in every way it can name something, by an agent with a key and by one with an access token. A new
tool fails here until somebody has thought about it.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.events.settings import Settings
from tests.events.agents.samples import ERAS, TOOLS, agent, both_eras, everything
from tests.events.oauth.authorization_server import authorization_server
from tests.events.photos.steps import accepted, key_of, upload
from tests.kit.mcp.wire import Agent, told
from tests.support import Client, Service, event_fields, queue_fields, running

NOBODYS = 10**9
"""The id of nothing."""

STRANGER = "strangrr"
"""The handle of nobody."""

LISTS: dict[str, list[dict[str, Any]]] = {
    "list_api_keys": [{}],
    **{
        tool: [{}, {"limit": 500}, {"limit": 1}, {"offset": 1}, {"offset": 1, "limit": 1}]
        for tool in ("list_organizers", "list_users", "list_events", "list_registrations", "list_queues")
    },
}
"""What shows all that a caller may see, and how it is asked."""

CHANGES: list[dict[str, Any]] = [
    *({}, {"title": "Mine now"}, {"price": 1}, {"price": 0}, {"capacity": 1}, {"capacity": 100}, {"currency": "EUR"}),
    *({"pricing_mode": "free"}, {"image_keys": ["mine"]}, {"datetime": "2031-01-01T00:00:00Z"}),
]
PACES: list[dict[str, Any]] = [{}, {"title": "Mine now"}, {"active": False}, {"release_rate": 1}, {"max_queue_size": 1}]
FETCHED = "http://127.0.0.1/a.jpg"
"""The address of a photo, were it public."""

UPLOAD: dict[str, Any] = {"content_type": "image/jpeg", "content_length": 1000}
MOVES: list[dict[str, Any]] = [{}, {"status": "registered"}, {"status": "waitlisted"}, {"amount_paid": 0}]

Probe = tuple[str, list[dict[str, Any]]]
"""A code, and the calls that are told just that, all of them in the same words."""


class Organizer:
    """An organizer and what belongs to it: a key, a queue, events in every state, photos in every state, people in
    every state.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.id = client.id
        self.key = 0
        self.queue = 0
        self.events: list[int] = []
        self.people: list[str] = []
        self.photos: list[str] = []

    async def furnish(self, service: Service, *people: str) -> None:
        """An event with one seat and one place to wait, one that is cancelled, and one that is past, where Pat waits
        to be settled. The first shows a photo, another is shown by none, and one has only been uploaded.
        """
        made = await self.client.post("/api/keys", {"api_key": {"name": f"Box office of {self.client.slug}"}})
        self.key = made.json()["data"]["id"]
        self.queue = (await self.client.create_queue(title=self.client.slug))["id"]
        await self.client.post(f"/api/queues/{self.queue}/join", {"visitor_id": "ann"})
        for capacity in (1, 10, 10):
            event = await self.client.create_event(
                title=self.client.slug, pricing_mode="fixed", price=2500, capacity=capacity, waitinglist_capacity=1
            )
            self.events.append(event["id"])
        first, cancelled, past = self.events
        shown, spare = (key_of(self.id, letter) for letter in "ab")
        await accepted(service, shown, spare)
        self.photos = [shown, spare, await upload(service, self.client)]
        await self.client.patch(f"/api/events/{first}", {"event": {"image_keys": [shown]}})
        for name in people:
            poll = await self.client.register(first, email=f"{name}@example.com")
            self.people.append(poll.rpartition("/")[2])
        await service.settle()
        await self.client.register(past, email="pat@example.com")
        await self.client.delete(f"/api/events/{cancelled}")
        await service.run_sql("update events set datetime = now() - interval '1 day' where id = %(id)s", id=past)


class Scene:
    """Eve, who was there first, and Ada, who has come since. Ann is registered with both, Ben with Ada alone.

    credential    what Eve's agents send
    alone         what her lists were while she was alone
    """

    def __init__(self, service: Service, eve: Organizer, credential: str) -> None:
        self.service = service
        self.eve = eve
        self.credential = credential
        self.alone: dict[str, list[str]] = {}

    async def ada_comes(self) -> None:
        self.alone = {tool: await self.lists(tool) for tool in LISTS}
        self.ada = Organizer(await self.service.organizer("Ada Events"))
        await self.ada.furnish(self.service, "ann", "ben", "cal")

    def agent(self, version: str = ERAS[0]) -> Agent:
        """An agent of Eve's."""
        return Agent(self.service.app, self.credential, version)

    async def lists(self, tool: str, version: str = ERAS[0]) -> list[str]:
        """What Eve is shown by a tool that lists."""
        return [shown(await self.agent(version).call(tool, **each)) for each in LISTS[tool]]

    def probes(self) -> dict[str, list[Probe]]:
        """How Eve tries to reach what is Ada's, and what does not exist, through each tool that can name it."""
        ada, eve = self.ada, self.eve
        ann, ben = ada.people[:2]
        either = (ada.id, NOBODYS)
        nothing = {"event_id": NOBODYS}
        changes = [*CHANGES, {"organizer_id": eve.id}]
        guests: list[dict[str, Any]] = [{"email": f"{name}@example.com"} for name in ("ann", "ben", "nobody")]
        guests += [{"user_id": who} for who in (ann, ben, STRANGER)]
        named: list[Probe] = [("forbidden", [{"event_id": id}]) for id in ada.events]
        at_hers: Probe = ("not_found", [{"event_id": eve.events[0], "user_id": who} for who in (ben, STRANGER)])
        people = [[{"event_id": id, "user_id": who} for who in (ann, ben, STRANGER)] for id in ada.events]
        in_person: list[Probe] = [
            *(("forbidden", each) for each in people),
            ("not_found", [{**nothing, "user_id": who} for who in (ann, ben, STRANGER)]),
            at_hers,
        ]
        mine = {"event_id": eve.events[0]}
        keys = [*ada.photos, key_of(ada.id, "z"), key_of(NOBODYS, "z")]
        sources = [*({"key": key} for key in (*keys, *eve.photos)), {"url": FETCHED}]
        photos: list[Probe] = [
            *(("forbidden", [{"event_id": id, "key": key} for key in (*keys, *eve.photos)]) for id in ada.events),
            ("not_found", [{**nothing, "key": key} for key in (*keys, *eve.photos)]),
        ]
        return {
            "create_api_key": [("forbidden", [{"name": "Mine now", "user_id": id} for id in either])],
            "revoke_api_key": [("forbidden", [{"id": ada.key}]), ("not_found", [{"id": NOBODYS}])],
            "create_event": [
                ("forbidden", [event_fields(organizer_id=id) for id in either]),
                ("validation_failed", [event_fields(image_keys=[key]) for key in keys]),
            ],
            "get_event": [*named, ("not_found", [nothing])],
            "update_event": [
                *(("forbidden", [{"event_id": id, **change} for change in changes]) for id in ada.events),
                ("forbidden", [{**mine, "organizer_id": id} for id in either]),
                ("validation_failed", [{**mine, "image_keys": [key]} for key in keys]),
                ("validation_failed", [{**mine, "image_keys": [eve.photos[0], key]} for key in keys]),
                ("not_found", [{**nothing, **change} for change in changes]),
            ],
            "cancel_event": [*named, ("not_found", [nothing])],
            "get_price_history": [*named, ("not_found", [nothing])],
            "add_event_photo": [
                *(("forbidden", [{"event_id": id, **source} for source in sources]) for id in ada.events),
                ("not_found", [{**nothing, **source} for source in sources]),
                ("validation_failed", [{**mine, "key": key} for key in keys]),
            ],
            "set_primary_photo": [*photos, ("validation_failed", [{**mine, "key": key} for key in keys])],
            "remove_event_photo": [*photos, ("not_found", [{**mine, "key": key} for key in keys])],
            "presign_upload": [
                ("validation_failed", [{**UPLOAD, "key": key} for key in keys]),
                ("validation_failed", [{**UPLOAD, "organizer_id": id} for id in either]),
            ],
            "create_registration": [
                *(("forbidden", [{"event_id": id, **guest} for guest in guests]) for id in ada.events),
                ("not_found", [{**nothing, **guest} for guest in guests]),
            ],
            "get_registration": in_person,
            "update_registration": [
                (code, [{**each, **move} for each in calls for move in MOVES]) for code, calls in in_person
            ],
            "delete_registration": in_person,
            "create_queue": [("forbidden", [queue_fields(organizer_id=id) for id in either])],
            "get_queue": [("forbidden", [{"queue_id": ada.queue}]), ("not_found", [{"queue_id": NOBODYS}])],
            "update_queue": [
                ("forbidden", [{"queue_id": ada.queue, **pace} for pace in PACES]),
                ("not_found", [{"queue_id": NOBODYS, **pace} for pace in PACES]),
            ],
            "delete_queue": [("forbidden", [{"queue_id": ada.queue}]), ("not_found", [{"queue_id": NOBODYS}])],
        }


@pytest.fixture(params=["with a key", "with an access token"])
async def scene(settings: Settings, request: pytest.FixtureRequest) -> AsyncIterator[Scene]:
    async with (
        authorization_server() as server,
        running(settings.model_copy(update={"oauth_issuer": server.issuer})) as service,
    ):
        eve = Organizer(await service.organizer("Eve Events", email="eve@example.com"))
        await eve.furnish(service, "ann")
        await service.settle()
        token = server.token(sub="eve", email="eve@example.com", email_verified=True)
        scene = Scene(service, eve, token if request.param == "with an access token" else str(eve.client.key))
        await scene.ada_comes()
        yield scene


def shown(result: dict[str, Any]) -> str:
    """What an agent reads of an answer."""
    assert result["isError"] is False
    return result["content"][0]["text"]


def words(result: dict[str, Any], arguments: dict[str, Any]) -> str:
    """What an agent reads of a refusal, but for what it has asked for itself."""
    text: str = result["content"][0]["text"]
    for key in (arguments.get("key", "key"), *arguments.get("image_keys", ())):
        text = text.replace(key, "key")
    for name in ("user_id", "event_id", "queue_id", "id"):
        text = text.replace(str(arguments.get(name, name)), name)
    return text


@both_eras
@pytest.mark.parametrize("tool", TOOLS)
async def test_through_no_tool_is_anything_of_another_organizer_seen_touched_or_probed(
    scene: Scene, tool: str, version: str
) -> None:
    eve = scene.agent(version)
    before = await everything(scene.service)

    if tool in LISTS:
        assert await scene.lists(tool, version) == scene.alone[tool]
    else:
        for code, calls in scene.probes()[tool]:
            answers = [(await eve.call(tool, **each), each) for each in calls]
            assert {told(result)["code"] for result, _ in answers} == {code}
            assert len({words(*answer) for answer in answers}) == 1
    assert await everything(scene.service) == before


async def test_every_attempt_is_on_a_tool_there_is(scene: Scene) -> None:
    assert {*LISTS, *scene.probes()} == {*TOOLS}
    assert all(calls for probes in scene.probes().values() for _, calls in probes)


async def test_what_is_refused_to_others_is_there_for_its_owner(scene: Scene) -> None:
    """Else the refusals above would prove nothing."""
    ada, theirs = agent(scene.service, scene.ada.client), scene.ada
    who = {"event_id": theirs.events[0], "user_id": theirs.people[0]}

    seen = {tool: len((await ada.call(tool))["structuredContent"]["data"]) for tool in LISTS}
    assert seen == {
        "list_api_keys": 2,
        "list_organizers": 1,
        "list_users": 3,
        "list_events": 3,
        "list_registrations": 2,
        "list_queues": 1,
    }
    for tool in ("get_event", "get_price_history"):
        for id in theirs.events:
            shown(await ada.call(tool, event_id=id))
    for tool in ("get_queue", "update_queue", "delete_queue"):
        shown(await ada.call(tool, queue_id=theirs.queue))
    for tool in ("get_registration", "update_registration", "delete_registration"):
        shown(await ada.call(tool, **who))
    [first, *_], [public, spare, uploaded] = theirs.events, theirs.photos
    for key in (spare, uploaded):
        shown(await ada.call("add_event_photo", event_id=first, key=key))
    shown(await ada.call("set_primary_photo", event_id=first, key=uploaded))
    shown(await ada.call("remove_event_photo", event_id=first, key=public))
    for tool, arguments in (("revoke_api_key", {"id": theirs.key}), ("cancel_event", {"event_id": theirs.events[0]})):
        shown(await ada.call(tool, **arguments))


async def test_an_upload_belongs_to_who_asked_for_it_whatever_it_is_called(scene: Scene) -> None:
    eve = scene.agent()

    for filename in (*scene.ada.photos, f"../{scene.ada.id}/a.jpg"):
        wanted = (await eve.call("presign_upload", **UPLOAD, filename=filename))["structuredContent"]
        assert wanted["key"].startswith(f"photos/{scene.eve.id}/")
        assert f"/{scene.ada.id}/" not in wanted["upload_url"]


async def test_a_person_known_to_two_organizers_is_shown_to_each_as_its_own(scene: Scene) -> None:
    eve, ada = scene.agent(), agent(scene.service, scene.ada.client)
    ann = scene.eve.people[0]
    assert ann == scene.ada.people[0]

    seen = [(await each.call("list_registrations"))["structuredContent"]["data"] for each in (eve, ada)]

    assert {each["event_id"] for each in seen[0] if each["user_id"] == ann} == {scene.eve.events[0]}
    assert {each["event_id"] for each in seen[1] if each["user_id"] == ann} == {scene.ada.events[0]}


async def test_whether_an_address_is_known_to_others_is_not_told(scene: Scene) -> None:
    """Ben has an account, for Ada has registered him; Zoe has none."""
    eve = scene.agent()
    await scene.eve.client.patch(f"/api/events/{scene.eve.events[0]}", {"event": {"capacity": 10}})

    told = [
        shown(await eve.call("create_registration", event_id=scene.eve.events[0], email=f"{name}@example.com"))
        for name in ("ben", "zoe")
    ]

    handles = [text.split('","action')[0][-8:] for text in told]
    assert handles[0] == scene.ada.people[1]
    assert told[0].replace(handles[0], "") == told[1].replace(handles[1], "")


async def test_an_admin_reaches_everything(scene: Scene) -> None:
    """As the contract has it: its keys are unrestricted."""
    admin = agent(scene.service, await scene.service.admin())

    for organizer in (scene.eve, scene.ada):
        for id in organizer.events:
            assert (await admin.call("get_event", event_id=id))["structuredContent"]["organizer_id"] == organizer.id
    assert len((await admin.call("list_organizers"))["structuredContent"]["data"]) == 2
