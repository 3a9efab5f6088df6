"""The outbox: which mails are sent, in which order, and what operators see of them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.kit import outbox, sender
from holdfast.kit.database import Database
from holdfast.kit.elsewhere import Elsewhere, NotStarted
from holdfast.kit.mail import Envelope
from holdfast.kit.outbox import Mail
from holdfast.kit.problems import Problem
from tests.kit import doings
from tests.kit.mail.posting import PEOPLE, all_ended, post, sending, states
from tests.smtp import Server
from tests.support import Service

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def test_a_mail_that_is_put_off_is_tried_for_three_days_with_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "PAUSES", (30, 21_600))
    attempts = [Mail(1, "hello", "ann", "ann@example.com", {}, NOW, number) for number in range(outbox.ATTEMPTS)]
    ended = [outbox.put_off(each, "451 later") for each in attempts]

    assert [each.pause for each in ended[:4]] == [30, 60, 120, 240]
    assert max(each.pause for each in ended) == 6 * 3600
    assert 3 * 86_400 <= sum(each.pause for each in ended) <= 3.25 * 86_400
    assert [each.outcome for each in ended] == [None] * (outbox.ATTEMPTS - 1) + ["failed"]


async def test_a_failed_mail_can_be_tried_again(service: Service, server: Server) -> None:
    server.answers["RCPT"] = ["550 nobody", ""]
    [id] = await post(service, "ann@example.com")
    async with sending(service):
        await all_ended(service)
        [listed] = await service.database.read(outbox.unsent)
        assert (listed.id, listed.state, listed.error) == (id, "failed", "550 nobody")
        await service.database.transact(lambda tx: outbox.retry(tx, id))
        await all_ended(service)

    assert server.recipients() == ["ann@example.com"]
    with pytest.raises(Problem, match=f"No mail with the id {id} waits or has failed"):
        await service.database.transact(lambda tx: outbox.retry(tx, id))


async def test_what_waits_is_measured(service: Service, server: Server) -> None:
    server.stop()
    await post(service, "ann@example.com")

    await service.database.read(outbox.measure)

    figures = (await service.anonymous.get("/metrics")).text
    assert "\nholdfast_mails_waiting 1.0\n" in figures
    assert "\nholdfast_mails_oldest_seconds " in figures


async def test_one_of_many_mails_with_one_cause_lets_others_go_first(service: Service, server: Server) -> None:
    await post(service, *PEOPLE, bulk=True)
    await post(service, "ann@example.com")
    async with sending(service):
        await all_ended(service)

    assert "ann@example.com" in server.recipients()[: sender.CONNECTIONS]


async def test_a_mail_that_is_no_longer_true_is_not_sent(service: Service, server: Server) -> None:
    await post(service, "ann@example.com", kind="stale")
    await post(service, "bob@example.com")
    async with sending(service):
        await all_ended(service)

    assert server.recipients() == ["bob@example.com"]
    assert await states(service) == {"ann@example.com": ("superseded", 1), "bob@example.com": ("sent", 1)}


async def test_a_mail_that_cannot_be_written_fails_alone(service: Service, server: Server) -> None:
    await post(service, "ann@example.com", kind="bad")
    await post(service, *PEOPLE)
    async with sending(service):
        await all_ended(service)

    assert sorted(server.recipients()) == sorted(PEOPLE)
    [(error,)] = await service.run_sql("select error from mails where outcome = 'failed'")
    assert error == "it could not be written: KeyError('arguments')"


async def test_a_mail_that_can_be_sent_to_nobody_fails_in_the_words_of_who_writes_it(
    service: Service, server: Server
) -> None:
    await post(service, "ann@example.com", kind="hopeless")
    await post(service, "bob@example.com")
    async with sending(service):
        await all_ended(service)

    assert server.recipients() == ["bob@example.com"]
    [(error,)] = await service.run_sql("select error from mails where outcome = 'failed'")
    assert error == "There is nothing to say."


async def test_a_mail_that_ends_the_process_that_writes_fails_and_delays_no_other(
    service: Service, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", doings.PATH)
    await post(service, "ann@example.com", kind="deadly")
    await post(service, *PEOPLE)
    async with Elsewhere(doings.written) as write:

        async def render(_: Database[Any], mails: Sequence[Mail]) -> list[Envelope]:
            contents = await write([each.kind for each in mails])
            return [
                Envelope(
                    mail.recipient, mail.message_id("events.example"), b"Subject: hello\r\n\r\n" + content + b"\r\n"
                )
                for mail, content in zip(mails, contents, strict=True)
            ]

        async with sending(service, render=render):
            await all_ended(service)

    assert sorted(server.recipients()) == sorted(PEOPLE)
    [(recipient, error)] = await service.run_sql("select recipient, error from mails where outcome = 'failed'")
    assert recipient == "ann@example.com"
    assert error.startswith("it could not be written: Crashed(")


async def test_while_nothing_can_be_written_no_mail_is_to_blame(service: Service, server: Server) -> None:
    await post(service, "ann@example.com")

    async def render(_: Database[Any], mails: Sequence[Mail]) -> list[Envelope]:
        raise NotStarted("no memory")

    with pytest.raises(NotStarted):
        await sender.run(service.database, render)

    assert await states(service) == {"ann@example.com": (None, 0)}
    async with sending(service):
        await all_ended(service)
    assert server.recipients() == ["ann@example.com"]


async def test_mails_of_a_thread_arrive_in_order_though_the_first_is_put_off(service: Service, server: Server) -> None:
    server.answers["RCPT ann@example.com"] = ["451 later", "451 later", ""]
    ids = [id for _ in range(5) for id in await post(service, "ann@example.com", thread="ann")]

    async with sending(service):
        await all_ended(service)

    assert [each.mail["Subject"] for each in server.received] == [f"hello {id}" for id in ids]
    assert await service.run_sql("select attempts from mails order by id") == [(3,), (1,), (1,), (1,), (1,)]
