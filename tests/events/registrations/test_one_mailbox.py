"""One mailbox has one seat, one organizer and one account, for every spelling and every endpoint."""

import pytest

from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import Service

SPELLINGS = ("joe@münchen.de", "JOE@xn--mnchen-3ya.de", "mailto:joe@münchen.de.", "j\u200boe@münchen.de")


async def test_spellings_of_one_address_get_one_seat(service: Service) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    urls = set[str]()
    for email in SPELLINGS:
        answer = await ada.post("/api/registrations", {"registration": {"event_id": event["id"], "email": email}})
        assert answer.status_code == 202
        urls.add(answer.json()["next"]["url"])
    await Visitor(service).send(event["id"], email=SPELLINGS[1])
    await service.settle()

    listed = (await ada.get(f"/api/registrations?event_id={event['id']}")).json()

    assert len(urls) == 1
    assert [registration["email"] for registration in listed["data"]] == ["joe@münchen.de"]


async def test_spellings_of_one_address_are_one_organizer(service: Service) -> None:
    statuses = [
        (
            await service.anonymous.post(
                "/api/organizers/register",
                {"organizer": {"name": "Joe Events", "email": email, "slug": f"joe-of-munich-{number}"}},
            )
        ).status_code
        for number, email in enumerate(SPELLINGS)
    ]

    assert statuses == [201, 422, 422, 422]


@pytest.mark.parametrize(
    ("email", "why"),
    [
        ("<a@example.com>", "must be an e-mail address such as ann@example.com"),
        ("a@example..com", "must be an e-mail address such as ann@example.com"),
        ("a@[127.0.0.1]", "must be an e-mail address such as ann@example.com"),
        ("a" * 65 + "@example.com", "must be an e-mail address such as ann@example.com"),
        ("änn@example.com", "has characters before the @ that are not ASCII, which our mail server does not take"),
    ],
)
async def test_an_address_that_no_mail_can_reach_is_refused_by_every_endpoint(
    service: Service, email: str, why: str
) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    organizer = {"name": "Joe Events", "email": email, "slug": "joe-without-mail"}
    visitor = Visitor(service)

    api = await ada.post("/api/registrations", {"registration": {"event_id": event["id"], "email": email}})
    registered = await service.anonymous.post("/api/organizers/register", {"organizer": organizer})
    call = {"name": "create_registration", "arguments": {"event_id": event["id"], "email": email}}
    tool = await ada.post(
        "/mcp",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        headers={"Accept": "application/json, text/event-stream"},
    )
    form = await visitor.send(event["id"], email=email)

    assert (api.status_code, api.json()["errors"]) == (422, {"email": [why]})
    assert (registered.status_code, registered.json()["errors"]) == (422, {"email": [why]})
    assert why in tool.text
    assert form.status_code == 422
    assert await service.run_sql("select from registrations") == []
