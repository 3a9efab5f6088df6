"""The outbox: which mails are sent, in which order, and what operators see of them."""

import asyncio
import contextlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import psutil
import pytest

from holdfast.kit.background.row_work import RetryBackoff
from holdfast.kit.background.subprocess_call import SubprocessCall, SubprocessStartError
from holdfast.kit.compat.task_ending import end_tasks
from holdfast.kit.contract.problems import Problem
from holdfast.kit.mail import mail_gauges, mail_lists, outbox, rendering, sender
from holdfast.kit.mail.message import Envelope
from holdfast.kit.mail.outbox import Mail
from holdfast.kit.postgres.database import Database
from tests.helpers.events_service import Service, eventually
from tests.helpers.smtp import MailServer
from tests.kit import subprocess_functions
from tests.kit.mail.posting import PEOPLE, has_received, mail_states, post_mails, run_senders, wait_until_all_ended

NOW = datetime(2027, 1, 1, tzinfo=UTC)


def test_a_mail_that_is_put_off_is_tried_for_three_days_with_growing_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "RETRY_BACKOFF", RetryBackoff(30, 21_600))
    attempts = [Mail(1, "hello", "ann", "ann@example.com", {}, NOW, number) for number in range(outbox.MAX_ATTEMPTS)]
    ended = [outbox.deferred_result(attempt, "451 later") for attempt in attempts]

    assert [result.pause for result in ended[:4]] == [30, 60, 120, 240]
    assert max(result.pause for result in ended) == 6 * 3600
    assert 3 * 86_400 <= sum(result.pause for result in ended) <= 3.25 * 86_400
    assert [result.outcome for result in ended] == [None] * (outbox.MAX_ATTEMPTS - 1) + ["failed"]


async def test_a_failed_mail_can_be_tried_again(service: Service, server: MailServer) -> None:
    server.answers["RCPT"] = ["550 nobody", ""]
    [id] = await post_mails(service, "ann@example.com")
    async with run_senders(service):
        await wait_until_all_ended(service)
        [listed] = await service.database.read(mail_lists.unsent_mails)
        assert (listed.id, listed.status, listed.error) == (id, "failed", "550 nobody")
        await service.database.transact(lambda tx: outbox.retry_mail(tx, id))
        await wait_until_all_ended(service)

    assert server.recipients() == ["ann@example.com"]
    with pytest.raises(Problem, match=f"No mail with the id {id} waits or has failed"):
        await service.database.transact(lambda tx: outbox.retry_mail(tx, id))


async def test_mails_of_one_cause_to_many_people_go_after_others(service: Service, server: MailServer) -> None:
    await post_mails(service, *PEOPLE, bulk=True)
    await post_mails(service, "ann@example.com")
    async with run_senders(service):
        await wait_until_all_ended(service)

    assert "ann@example.com" in server.recipients()[: sender.MAX_CONNECTIONS]


async def test_a_mail_that_is_no_longer_true_is_not_sent(service: Service, server: MailServer) -> None:
    await post_mails(service, "ann@example.com", kind="stale")
    await post_mails(service, "bob@example.com")
    async with run_senders(service):
        await wait_until_all_ended(service)

    assert server.recipients() == ["bob@example.com"]
    assert await mail_states(service) == {"ann@example.com": ("superseded", 1), "bob@example.com": ("sent", 1)}


async def test_a_mail_that_cannot_be_written_fails_alone(service: Service, server: MailServer) -> None:
    await post_mails(service, "ann@example.com", kind="bad")
    await post_mails(service, *PEOPLE)
    async with run_senders(service):
        await wait_until_all_ended(service)

    assert sorted(server.recipients()) == sorted(PEOPLE)
    [(error,)] = await service.run_sql("select error from mails where outcome = 'failed'")
    assert error == "it could not be written: KeyError('arguments')"


async def test_a_mail_without_a_reachable_recipient_fails_with_the_reason_of_its_renderer(
    service: Service, server: MailServer
) -> None:
    await post_mails(service, "ann@example.com", kind="hopeless")
    await post_mails(service, "bob@example.com")
    async with run_senders(service):
        await wait_until_all_ended(service)

    assert server.recipients() == ["bob@example.com"]
    [(error,)] = await service.run_sql("select error from mails where outcome = 'failed'")
    assert error == "There is nothing to say."


async def test_a_mail_that_kills_the_rendering_process_fails_and_delays_no_other(
    service: Service, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", subprocess_functions.PATH)
    await post_mails(service, "ann@example.com", kind="deadly")
    await post_mails(service, *PEOPLE)
    async with SubprocessCall(subprocess_functions.write_mails) as write:

        async def render(_: Database[Any], mails: Sequence[Mail]) -> list[Envelope]:
            contents = await write([mail.kind for mail in mails])
            return [
                Envelope(
                    mail.recipient, mail.message_id("events.example"), b"Subject: hello\r\n\r\n" + content + b"\r\n"
                )
                for mail, content in zip(mails, contents, strict=True)
            ]

        async with run_senders(service, render=render):
            await wait_until_all_ended(service)

    assert sorted(server.recipients()) == sorted(PEOPLE)
    [(recipient, error)] = await service.run_sql("select recipient, error from mails where outcome = 'failed'")
    assert recipient == "ann@example.com"
    assert error.startswith("it could not be written: SubprocessCrash(")


async def test_the_process_that_writes_ends_when_there_were_no_mails_for_long(
    service: Service, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", subprocess_functions.PATH)
    monkeypatch.setattr(rendering, "RENDERER_IDLE_SECONDS", 0.5)

    async def render(
        write: rendering.ContentRenderer[list[str]], _: Database[Any], mails: Sequence[Mail]
    ) -> rendering.RenderedMails:
        contents = await write([mail.kind for mail in mails])
        return [
            Envelope(mail.recipient, mail.message_id("events.example"), b"Subject: hello\r\n\r\n" + content + b"\r\n")
            for mail, content in zip(mails, contents, strict=True)
        ]

    def writes(process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has ended, or is a zombie
            return subprocess_functions.__name__.rpartition(".")[2] in " ".join(process.cmdline())
        return False

    sending_mails = asyncio.create_task(
        rendering.run_sender(service.database, subprocess_functions.write_mails, render)
    )
    for recipient in ("ann@example.com", "bob@example.com"):
        await post_mails(service, recipient)
        await wait_until_all_ended(service)
        await eventually(lambda: not any(map(writes, psutil.Process().children())))
    await end_tasks([sending_mails])

    assert server.recipients() == ["ann@example.com", "bob@example.com"]


async def test_a_rendering_process_that_cannot_start_fails_no_mail(service: Service, server: MailServer) -> None:
    await post_mails(service, "ann@example.com")

    async def render(_: Database[Any], mails: Sequence[Mail]) -> list[Envelope]:
        raise SubprocessStartError("no memory")

    with pytest.raises(SubprocessStartError):
        await sender.run(service.database, render)

    assert await mail_states(service) == {"ann@example.com": (None, 0)}
    async with run_senders(service):
        await wait_until_all_ended(service)
    assert server.recipients() == ["ann@example.com"]


async def test_mails_of_a_thread_arrive_in_order_though_the_first_is_put_off(
    service: Service, server: MailServer
) -> None:
    server.answers["RCPT ann@example.com"] = ["451 later", "451 later", ""]
    ids = [id for _ in range(5) for id in await post_mails(service, "ann@example.com", thread="ann")]

    async with run_senders(service):
        await wait_until_all_ended(service)

    assert [received.mail["Subject"] for received in server.received] == [f"hello {id}" for id in ids]
    assert await service.run_sql("select attempts from mails order by id") == [(3,), (1,), (1,), (1,), (1,)]


async def test_a_held_mail_keeps_the_later_ones_of_its_thread_waiting_and_is_no_backlog(
    service: Service, server: MailServer
) -> None:
    [first] = await post_mails(service, "ann@example.com")
    await service.run_sql("update mails set hold = 'organizer', due_at = now() + interval '1 day'")
    await post_mails(service, "ann@example.com", "bob@example.com")
    async with run_senders(service):
        await eventually(lambda: service.run_sql("select from mails where hold is not null and id > %(id)s", id=first))
        await eventually(lambda: has_received(server, 1))
        assert server.recipients() == ["bob@example.com"]
        await eventually(lambda: service.run_sql("select from mails where recipient like 'bob%%' and ended_at < now()"))
        await service.database.read(mail_gauges.update_gauges)
        figures = (await service.anonymous.get("/metrics")).text
        assert "\nholdfast_mails_waiting 0.0\n" in figures
        assert "\nholdfast_mails_held 2.0\n" in figures
        listed = await service.database.read(mail_lists.unsent_mails)
        assert [(mail.id, mail.status) for mail in listed] == [(first, "held"), (first + 1, "held")]

    await service.run_sql("update mails set due_at = now() where hold is not null")
    async with run_senders(service):
        await wait_until_all_ended(service)
    assert [received.message_id.partition(".")[0] for received in server.received[1:]] == [str(first), str(first + 1)]
