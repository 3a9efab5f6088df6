"""Mails have links to the service, so a process that does not know its address sends none."""

from structlog.testing import capture_logs

from holdfast.events.mails import sending
from tests.events.mails.post import ANN, Post
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import eventually, running_events


async def test_a_process_without_the_address_of_the_service_sends_nothing_and_says_so(post: Post) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], ANN)
    settings = post.service.database.resources.settings.model_copy(update={"base_url": ""})

    with capture_logs() as logs:
        async with running_events(post.service.database.resources.settings) as another:
            object.__setattr__(another.database.resources, "settings", settings)
            async with run_in_background(sending.run(another.database)):
                await eventually(lambda: logs)

    assert [log["event"] for log in logs] == [
        "this process sends no mails: set EVENTS_BASE_URL, since mails have links to the service"
    ]
    assert [received.recipient for received in await post.deliver()] == [ANN]
