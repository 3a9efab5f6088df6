"""The page of one event in the console."""

import re

from tests.events.console.event_scene import elsewhere, signed_in
from tests.support import Service


async def test_it_says_how_the_event_stands(service: Service) -> None:
    ada, browser = await signed_in(service)
    event = await ada.create_event(capacity=1, waitinglist_capacity=4, location_name="Studio")
    for name in ("ann", "bob"):
        await ada.register(event["id"], email=f"{name}@example.com")
    await service.settle()
    await ada.register(event["id"], email="cleo@example.com")

    page = await browser.get(f"/console/events/{event['id']}")

    for said in ("1 of 1 seats taken", "1 waiting, with room for 4", "1 registration is not settled yet", "Studio"):
        assert said in page.text


async def test_the_price_is_a_picture_with_words(service: Service) -> None:
    ada, browser = await signed_in(service)
    event = await ada.create_event(pricing_mode="fixed", price=1500, currency="EUR")
    path = f"/console/events/{event['id']}"
    assert "It has never changed." in (await browser.get(path)).text

    await ada.patch(f"/api/events/{event['id']}", {"event": {"price": 2050}})
    page = await browser.get(path)

    assert re.search(r'<path d="M0 [0-9VH ]+"', page.text)
    assert re.search("€15 first, €15 at the lowest, €20.50 at the highest, €20.50 now.", page.text)


async def test_the_event_of_another_organizer_is_not_shown(service: Service) -> None:
    _, browser = await signed_in(service)
    other = await elsewhere(service)

    answers = [await browser.get(f"/console/events/{id}") for id in (other["id"], 99999, "x", "-1")]

    assert [each.status_code for each in answers] == [403, 404, 404, 404]
    assert "Secret meeting" not in "".join(each.text for each in answers)


async def test_who_is_not_signed_in_is_asked_to_sign_in(service: Service) -> None:
    event = await elsewhere(service)

    for path in ("new", f"{event['id']}", f"{event['id']}/edit", f"{event['id']}/cancel"):
        answer = await service.http.get(f"/console/events/{path}", headers={"Accept": "text/html"})
        assert answer.headers["location"] == f"/sign-in?return_to=%2Fconsole%2Fevents%2F{path.replace('/', '%2F')}"
