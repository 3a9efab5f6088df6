"""Two organizers side by side, and every way in which one may try to reach what belongs to the other."""

from typing import Any

from tests.events.agents.samples import ERAS
from tests.helpers.agents import Agent
from tests.helpers.events_service import Client, Service, event_fields, queue_fields
from tests.helpers.photos import accept_photos, key_of, upload

NOBODYS = 10**9
"""The id of nothing."""

STRANGER = "strangrr"
"""The handle of nobody."""

LISTS: dict[str, list[dict[str, Any]]] = {
    "list_api_keys": [{}],
    "list_webhooks": [{}],
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


class ProbedOrganizer:
    """An organizer and what belongs to it: a key, a queue, an endpoint of webhooks, and events,
    photos and people in every state.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        self.id = client.id
        self.key = 0
        self.queue = 0
        self.endpoint = 0
        self.events: list[int] = []
        self.people: list[str] = []
        self.photos: list[str] = []

    async def prepare(self, service: Service, *people: str) -> None:
        """An event with one seat and one place to wait, one that is cancelled, and one that is past, where Pat waits
        to be settled. The first shows a photo, another is shown by none, and one has only been uploaded.
        """
        made = await self.client.post("/api/keys", {"api_key": {"name": f"Box office of {self.client.slug}"}})
        self.key = made.json()["data"]["id"]
        self.queue = (await self.client.create_queue(title=self.client.slug))["id"]
        await self.client.post(f"/api/queues/{self.queue}/join", {"visitor_id": "ann"})
        endpoint = {"url": f"https://{self.client.slug}.example/", "types": ["queue.drained"]}
        made = await self.client.post("/api/webhook_endpoints", {"webhook_endpoint": endpoint})
        self.endpoint = made.json()["data"]["id"]
        for capacity in (1, 10, 10):
            event = await self.client.create_event(
                title=self.client.slug, pricing_mode="fixed", price=2500, capacity=capacity, waitinglist_capacity=1
            )
            self.events.append(event["id"])
        first, cancelled, past = self.events
        photo, spare = (key_of(self.id, letter) for letter in "ab")
        await accept_photos(service, photo, spare)
        self.photos = [photo, spare, await upload(service, self.client)]
        await self.client.patch(f"/api/events/{first}", {"event": {"image_keys": [photo]}})
        for name in people:
            poll = await self.client.register(first, email=f"{name}@example.com")
            self.people.append(poll.rpartition("/")[2])
        await service.settle()
        await self.client.register(past, email="pat@example.com")
        await self.client.delete(f"/api/events/{cancelled}")
        await service.run_sql("update events set datetime = now() - interval '1 day' where id = %(id)s", id=past)


class TwoOrganizers:
    """Eve, who was there first, and Ada, who has come since. Ann is registered with both, Ben with Ada alone.

    credential    what Eve's agents send
    alone         what her lists were while she was alone
    """

    def __init__(self, service: Service, eve: ProbedOrganizer, credential: str) -> None:
        self.service = service
        self.eve = eve
        self.credential = credential
        self.alone: dict[str, list[str]] = {}

    async def ada_comes(self) -> None:
        self.alone = {tool: await self.lists(tool) for tool in LISTS}
        self.ada = ProbedOrganizer(await self.service.organizer("Ada Events"))
        await self.ada.prepare(self.service, "ann", "ben", "cal")

    def agent(self, version: str = ERAS[0]) -> Agent:
        """An agent of Eve's."""
        return Agent(self.service.app, self.credential, version)

    async def lists(self, tool: str, version: str = ERAS[0]) -> list[str]:
        """What Eve is shown by a tool that lists."""
        return [content_text(await self.agent(version).call(tool, **arguments)) for arguments in LISTS[tool]]

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
            *(("forbidden", person) for person in people),
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
        endpoints = [{"endpoint_id": id} for id in (ada.endpoint, NOBODYS)]
        return {
            "set_webhook": [
                ("not_found", [{**endpoint, "url": "https://eve.example/"} for endpoint in endpoints]),
                ("not_found", [{**endpoint, "active": False} for endpoint in endpoints]),
            ],
            "delete_webhook": [("not_found", endpoints)],
            "ping_webhook": [("not_found", endpoints)],
            "list_webhook_deliveries": [("not_found", endpoints)],
            "list_webhook_attempts": [("not_found", [{**endpoint, "message_id": "msg_1"} for endpoint in endpoints])],
            "resend_webhook_messages": [
                ("not_found", [{**endpoint, "since": "2026-01-01T00:00:00Z"} for endpoint in endpoints])
            ],
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
            # It names nobody.
            "create_onboarding_link": [],
            "create_registration": [
                *(("forbidden", [{"event_id": id, **guest} for guest in guests]) for id in ada.events),
                ("not_found", [{**nothing, **guest} for guest in guests]),
            ],
            "get_registration": in_person,
            "update_registration": [
                (code, [{**call, **move} for call in calls for move in MOVES]) for code, calls in in_person
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


def content_text(result: dict[str, Any]) -> str:
    """What an agent reads of an answer."""
    assert result["isError"] is False
    return result["content"][0]["text"]
