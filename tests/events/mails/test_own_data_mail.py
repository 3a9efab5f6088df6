"""The mail with a link to the person's data."""

from tests.events.mails.post import ANN, Post, body, links
from tests.events.pages.own_data import OwnDataReader, ask_for_own_data, sent_links
from tests.events.pages.own_registration import own_path


async def ask_for_data(post: Post, language: str = "en") -> None:
    event = await post.organizer.create_event()
    await post.sign_up(event["id"], ANN)
    await post.deliver()
    await ask_for_own_data(post.service, await own_path(post.service, event["id"], ANN), language)


async def test_the_link_in_the_mail_opens_the_own_data(post: Post) -> None:
    await ask_for_data(post)
    path = await sent_links(post.service)

    [mail] = await post.deliver()

    assert (mail.recipient, mail.mail["Subject"]) == (ANN, "Your data at Holdfast Events")
    for kind in ("plain", "html"):
        assert links(body(mail.mail, kind)) == [f"http://events.test{path}?lang=en"]
    assert "The link works once, within one hour." in body(mail.mail)
    assert (await OwnDataReader(post.service, path).open()).status_code == 200


async def test_the_mail_with_the_link_to_the_data_is_in_the_language_of_the_page(post: Post) -> None:
    await ask_for_data(post, "de")

    [mail] = await post.deliver()

    assert mail.mail["Subject"] == "Ihre Daten bei Holdfast Events"
    assert "?lang=de" in body(mail.mail)


async def test_a_link_to_the_data_that_is_no_longer_valid_is_not_sent(post: Post) -> None:
    await ask_for_data(post)
    await post.service.run_sql("update users set data_link_at = data_link_at - interval '61 minutes'")

    assert await post.deliver() == []


async def test_a_person_who_is_erased_before_the_mail_is_sent_gets_none(post: Post) -> None:
    await ask_for_data(post)
    ann = OwnDataReader(post.service, await sent_links(post.service))
    await ann.open()
    await ann.press("erase", confirmed="yes")

    assert await post.deliver() == []
    assert await post.service.run_sql("select from mails where recipient = %(ann)s", ann=ANN) == []
