"""The mail with a link to sign in."""

from holdfast.kit.mail import turns
from holdfast.kit.mail.shards import ShardLeases
from tests.events.mails.post import ANN, Post, body, links
from tests.helpers.form_browser import Browser


async def test_the_link_in_the_mail_signs_in(post: Post) -> None:
    ann = Browser(post.service)
    path = await ann.ask(ANN)

    [mail] = await post.deliver()

    assert (mail.recipient, mail.mail["Subject"]) == (ANN, "Sign in to Holdfast Events")
    for kind in ("plain", "html"):
        assert links(body(mail.mail, kind)) == [f"http://events.test{path}?lang=en"]
    assert "Open the link within 15 minutes" in body(mail.mail)
    assert (await ann.send(path)).status_code == 303


async def test_the_sign_in_mail_is_in_the_language_of_the_page(post: Post) -> None:
    await Browser(post.service, language="de").ask(ANN)

    [mail] = await post.deliver()

    assert mail.mail["Subject"] == "Bei Holdfast Events einloggen"
    assert "Öffnen Sie den Link innerhalb von 15 Minuten" in body(mail.mail)


async def test_a_sign_in_link_that_is_no_longer_valid_is_not_sent(post: Post) -> None:
    await Browser(post.service).sign_in(ANN)
    await Browser(post.service).ask("late@example.com")
    await post.service.run_sql("update sign_in_links set asked_at = now() - interval '1 hour' where used_at is null")

    assert await post.deliver() == []
    assert await post.service.run_sql("select outcome from mails order by id") == [("superseded",), ("superseded",)]


async def test_a_sign_in_mail_does_not_wait_behind_the_mails_of_a_crowd(post: Post) -> None:
    event = await post.organizer.create_event(capacity=50)
    await post.register(event["id"], *(f"person{number}@example.com" for number in range(40)))
    await Browser(post.service).ask(ANN)

    # As a process that has just started does:
    database = post.service.database
    [row] = await database.autocommit(
        lambda writer: ShardLeases().lease(writer, 1, 8, 64, turns.FIRST_OWNER, no_owner_first=True)
    )
    [first, *_] = await database.read(lambda reader: turns.due_mails(reader, row.shards, 8))
    await database.autocommit(lambda writer: ShardLeases().give_back(writer, row))
    assert first.recipient == ANN
    assert len(await post.deliver()) == 41
