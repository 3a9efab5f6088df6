"""People register on a form, without a key, and see how it went."""

import pytest

from tests.helpers.event_visitor import Visitor, page_state, page_text
from tests.helpers.events_service import Service


@pytest.mark.parametrize("framed", [True, False], ids=["in a frame", "on the page of the event"])
async def test_a_form_leads_to_the_outcome(service: Service, framed: bool) -> None:
    ada = await service.organizer()
    event = await ada.create_event()
    visitor = Visitor(service, framed=framed)

    path = await visitor.register(event["id"], "Ann@Example.com", name="Ann Lee")
    waiting = await visitor.http.get(path)
    assert await service.settle() == 1
    seated = await visitor.http.get(path)

    assert path.endswith("/outcome/embed" if framed else "/outcome")
    assert (waiting.status_code, page_state(waiting)) == (200, "pending")
    assert "We have received your registration." in page_text(waiting)
    assert page_state(seated) == "registered"
    assert "You have a seat." in page_text(seated)
    [registration] = (await ada.get("/api/registrations")).json()["data"]
    assert (registration["email"], registration["name"]) == ("ann@example.com", "Ann Lee")
    assert registration["status"] == "registered"
    assert "ann@example.com" not in seated.text.lower()
