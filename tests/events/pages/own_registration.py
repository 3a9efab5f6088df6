"""A person on the page of their own registration."""

from typing import Any

import httpx2

from holdfast.events.registrations.links import own_url
from tests.helpers.event_visitor import Visitor, field_value
from tests.helpers.events_service import Client, Service


async def register_and_settle(
    service: Service, ada: Client, event: dict[str, Any], *people: str, visitor: Visitor | None = None
) -> list[str]:
    """Register people on the form, settle them, and return the addresses of their own pages, as mails have them."""
    visitor = visitor or Visitor(service)
    for person in people:
        await visitor.register(event["id"], f"{person}@example.com", name=person.title())
    await service.settle()
    return [await own_path(service, event["id"], f"{person}@example.com") for person in people]


async def own_path(service: Service, event_id: int, email: str) -> str:
    [(user_id, arrival)] = await service.run_sql(
        """
        select public_id, arrival from registrations join users on users.id = user_id
         where event_id = %(event_id)s and email = %(email)s
        """,
        event_id=event_id,
        email=email,
    )
    resources = service.database.resources
    return own_url(resources.settings, resources.secret, event_id, user_id, arrival)


async def registration_statuses(ada: Client) -> dict[str, str]:
    return {
        registration["email"][:3]: registration["status"]
        for registration in (await ada.get("/api/registrations")).json()["data"]
    }


async def cancel_registration(service: Service, address: str) -> httpx2.Response:
    """Press the button of the question, and let the time to undo it pass; the page that is left."""
    http = Visitor(service).http
    page = await http.get(f"{address}/cancel")
    await http.post(f"{address}/cancel", data={"token": field_value(page, "token")})
    await service.complete_cancellations()
    return await http.get(address)


async def ask_to_cancel(service: Service, address: str) -> httpx2.Response:
    """Answer the question whether to give a registration up; the page that follows."""
    http = Visitor(service).http
    page = await http.get(f"{address}/cancel")
    answer = await http.post(f"{address}/cancel", data={"token": field_value(page, "token")})
    assert answer.status_code == 303, answer.text
    return await http.get(answer.headers["location"])


async def register_in_order(service: Service, *people: str, **fields: Any) -> tuple[Client, dict[str, Any], list[str]]:
    """An event with one seat, those who registered for it, and the addresses of their own pages."""
    ada = await service.organizer()
    event = await ada.create_event(**{"capacity": 1, "waitinglist_capacity": 5, **fields})
    return ada, event, await register_and_settle(service, ada, event, *people)
