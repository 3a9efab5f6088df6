"""Mails to the people of an organizer that a stranger had made, and that was ended."""

from holdfast.events import ownership
from holdfast.events.ownership import CancelEventsArguments
from holdfast.kit.operations.steps import Steps
from tests.events.mails.post import ANN, Post, body
from tests.helpers.form_browser import Browser

OWNER = "owner@example.com"


async def test_people_get_a_mail_that_the_event_is_cancelled_without_the_name_of_its_organizer(post: Post) -> None:
    stranger = await post.service.organizer("Victim Savings Bank", is_proved=False, email=OWNER)
    event = await stranger.create_event(title="Open day")
    await post.sign_up(event["id"], ANN)
    assert await post.deliver() == []
    owner = Browser(post.service)
    await owner.sign_in(OWNER)
    await post.deliver()

    await owner.send("/console/before", whose="other")
    await ownership.cancel_events(Steps(post.service.database), CancelEventsArguments(stranger.id))

    # The mail about the seat was held, and is not true any more.
    [mail] = await post.deliver()
    assert mail.recipient == ANN
    assert "cancelled" in str(mail.mail["subject"]).lower()
    assert "Victim" not in body(mail.mail)
    assert "for an event of Unconfirmed organizer" in body(mail.mail)
