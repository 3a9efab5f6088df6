"""The page after registering: the masked address, what happens next, and how to correct the address."""

import re

from tests.events.pages.reading import readable_text
from tests.helpers.event_visitor import Visitor
from tests.helpers.events_service import Service


async def test_a_seated_visitor_reads_the_masked_address_and_what_happens_next(service: Service) -> None:
    ada = await service.organizer()
    await service.run_sql("update users set proved_at = now()")
    event = await ada.create_event(datetime="2031-07-01T18:00:00Z", timezone="Europe/Berlin")
    visitor = Visitor(service)
    outcome = await visitor.register(event["id"], "ann.lee@example.com")
    pending = await visitor.http.get(outcome)
    await service.settle()

    page = await visitor.http.get(outcome)

    assert "What happens next" not in readable_text(pending)
    for sentence in (
        "You get an e-mail with this code at a•••@example.com . Show the code at the entrance.",
        "Cancel by July 1, 2031, 8:00 PM CEST with the link in the e-mail.",
        "Not a•••@example.com ? Change it",
    ):
        assert sentence in readable_text(page)
    assert "ann.lee" not in page.text
    assert f'action="{outcome}/address"' in page.text
    assert re.search(r'<div class="picture">\s*<svg class="cover"', page.text)


async def test_a_waiting_visitor_reads_that_two_mails_come(service: Service) -> None:
    ada = await service.organizer()
    await service.run_sql("update users set proved_at = now()")
    event = await ada.create_event(capacity=1, waitinglist_capacity=1)
    visitor = Visitor(service)
    await visitor.register(event["id"], "ann@example.com")
    outcome = await visitor.register(event["id"], "ben@example.com")
    await service.settle()

    page = readable_text(await visitor.http.get(outcome))

    assert "You get an e-mail at b•••@example.com , and another one as soon as you have a seat." in page
    assert "Show the code" not in page


async def test_no_mail_is_promised_while_mails_wait_for_the_organizer(service: Service) -> None:
    event = await (await service.organizer()).create_event()
    await service.run_sql("update users set proved_at = null")
    visitor = Visitor(service)
    outcome = await visitor.register(event["id"], "ann@example.com")
    await service.settle()

    page = readable_text(await visitor.http.get(outcome))

    assert "You get an e-mail with this code" not in page
    assert "The organizer has not confirmed their e-mail address yet." in page
