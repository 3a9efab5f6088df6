"""A person whom the organizer puts on the waiting list is informed by the page and by mail, and gets no free seat by
itself.
"""

from tests.events.mails.post import ANN, Post, body, links
from tests.helpers.event_visitor import page_text

PUT_THERE = "The organizer has put you on the waiting list, and can give you a seat."


async def test_the_mail_and_the_page_say_who_put_the_person_on_the_waiting_list(post: Post) -> None:
    event = await post.organizer.create_event(capacity=5, waitinglist_capacity=5)
    await post.sign_up(event["id"], ANN)
    await post.deliver()

    await post.organizer.patch(await post.path(event["id"], ANN), {"registration": {"status": "waitlisted"}})

    [arrived] = await post.deliver()
    text = body(arrived.mail)
    [url] = [link for link in links(text) if "/registrations/" in link and "/cancel" not in link]
    page = page_text(await post.service.http.get(url))
    for readable in (text, page):
        assert PUT_THERE in " ".join(readable.split())
        assert "All seats are taken" not in readable
        assert "place 0" not in readable


async def test_a_person_moved_back_to_a_seat_gets_a_mail_that_says_so(post: Post) -> None:
    event = await post.organizer.create_event(capacity=5, waitinglist_capacity=5)
    await post.sign_up(event["id"], ANN)
    path = await post.path(event["id"], ANN)
    for status in ("waitlisted", "registered"):
        await post.deliver()
        await post.organizer.patch(path, {"registration": {"status": status}})

    [arrived] = await post.deliver()

    assert "moved up from the waiting list" in " ".join(body(arrived.mail).split())
