"""Each mail is sent once, for every behaviour of the mail server."""

import contextlib
from typing import Any

import psycopg
import pytest
from psycopg_pool import PoolTimeout
from structlog.testing import capture_logs

from holdfast.events.settings import Settings
from holdfast.kit.background.row_work import RetryBackoff
from holdfast.kit.mail import mail_lists, outbox, sender, turns
from holdfast.kit.postgres.database import Reader
from tests.helpers.events_service import Service, eventually, running_events
from tests.helpers.smtp import BREAK, NEVER, MailServer
from tests.kit.mail.posting import PEOPLE, has_received, mail_states, post_mails, run_senders, wait_until_all_ended


async def test_forty_mails_are_sent_once_each_over_a_few_connections(service: Service, server: MailServer) -> None:
    async with run_senders(service):
        await post_mails(service, *PEOPLE)
        await wait_until_all_ended(service)

    assert sorted(server.recipients()) == sorted(PEOPLE)
    assert server.connections() <= sender.MAX_CONNECTIONS
    assert {*(await mail_states(service)).values()} == {("sent", 1)}
    assert len({received.message_id for received in server.received}) == 40


async def test_a_mail_is_sent_as_soon_as_its_transaction_commits(service: Service, server: MailServer) -> None:
    async with run_senders(service):
        await post_mails(service, "first@example.com")
        await wait_until_all_ended(service)
        await post_mails(service, "second@example.com")
        await wait_until_all_ended(service, sender.POLL_SECONDS / 2)

    assert server.recipients() == ["first@example.com", "second@example.com"]


async def test_a_refused_address_fails_with_the_words_of_the_server_and_delays_no_other(
    service: Service, server: MailServer
) -> None:
    server.answers["RCPT 0@example.com"] = ["550 5.1.1 no such person"]
    server.answers["DATA 1@example.com"] = ["554 5.7.1 spam"]

    async with run_senders(service):
        await post_mails(service, *PEOPLE)
        await wait_until_all_ended(service)

    assert sorted(server.recipients()) == sorted(PEOPLE[2:])
    errors = await service.run_sql("select recipient, outcome, error from mails where outcome <> 'sent' order by id")
    assert errors == [
        ("0@example.com", "failed", "550 5.1.1 no such person"),
        ("1@example.com", "failed", "554 5.7.1 spam"),
    ]


async def test_a_mail_that_is_put_off_for_days_fails(
    service: Service, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MAX_ATTEMPTS", 3)
    server.answers["RCPT"] = ["451 greylisted"]

    async with run_senders(service):
        await post_mails(service, "ann@example.com")
        await wait_until_all_ended(service)

    assert await mail_states(service) == {"ann@example.com": ("failed", 3)}


async def test_a_mail_that_becomes_due_between_two_looks_leaves_at_once(
    service: Service, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds_until_next_due = turns.seconds_until_next_due

    async def becoming_due(reader: Reader[Any]) -> float | None:
        await service.run_sql("update mails set due_at = now() where due_at > now()")
        return await seconds_until_next_due(reader)

    await post_mails(service, "ann@example.com")
    await service.run_sql("update mails set due_at = now() + interval '1 hour'")
    monkeypatch.setattr(turns, "seconds_until_next_due", becoming_due)

    async with run_senders(service):
        await wait_until_all_ended(service, sender.POLL_SECONDS / 2)

    assert server.recipients() == ["ann@example.com"]


async def test_an_unreachable_server_counts_no_attempts_and_gets_all_mails_later(
    service: Service, server: MailServer
) -> None:
    server.stop()
    async with run_senders(service):
        await post_mails(service, *PEOPLE)
        assert {*(await mail_states(service)).values()} == {(None, 0)}
        server.start()
        await wait_until_all_ended(service)

    assert sorted(server.recipients()) == sorted(PEOPLE)
    assert {*(await mail_states(service)).values()} == {("sent", 1)}


async def test_an_unreachable_server_and_its_return_are_logged_once(service: Service, server: MailServer) -> None:
    server.answers["MAIL"] = ["421 later"] * 20 + [""]
    with capture_logs() as logs:
        async with run_senders(service):
            await post_mails(service, *PEOPLE[:2])
            await wait_until_all_ended(service)

    assert [log["event"] for log in logs if "mail" in log["event"]] == [
        "mails cannot be sent; trying until they can",
        "the mail server is reachable again",
    ]
    assert len([command for _, command, _ in server.commands if command == "MAIL"]) > 20


@pytest.mark.parametrize("reply", ["550 not from you", "421 too many mails", NEVER, BREAK])
async def test_a_server_that_refuses_our_sender_fails_no_mail(reply: str, service: Service, server: MailServer) -> None:
    server.answers["MAIL"] = [reply, reply, reply, reply, reply, reply, ""]
    async with run_senders(service):
        await post_mails(service, *PEOPLE)
        await wait_until_all_ended(service)

    assert sorted(server.recipients()) == sorted(PEOPLE)
    assert {*(await mail_states(service)).values()} == {("sent", 1)}


async def test_a_mail_that_waits_for_a_server_that_refuses_our_sender_says_why(
    service: Service, server: MailServer
) -> None:
    server.answers["MAIL"] = ["550 5.7.1 not from you"]

    async def errors() -> list[tuple[str | None, int]]:
        mails = await service.database.read(mail_lists.unsent_mails)
        return [(mail.error, mail.attempts) for mail in mails if mail.error]

    await post_mails(service, "ann@example.com")
    async with run_senders(service):
        await eventually(errors)

    assert await errors() == [("550 5.7.1 not from you", 0)]


async def test_a_mail_at_which_the_server_breaks_down_does_not_stop_the_others(
    service: Service, server: MailServer
) -> None:
    server.answers["DATA poison@example.com"] = [BREAK]
    async with run_senders(service):
        await post_mails(service, "poison@example.com", *PEOPLE)
        await eventually(lambda: has_received(server, 40))

        async def put_off() -> bool:
            return bool(await service.run_sql("select from mails where attempts > 0 and outcome is null"))

        await eventually(put_off)

    assert sorted(server.recipients()) == sorted(PEOPLE)


async def test_a_mail_at_which_the_server_stalls_is_put_off_at_once(
    service: Service, server: MailServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "RETRY_BACKOFF", RetryBackoff(3600, 3600))
    server.answers["RCPT ann+stalled@example.com"] = [NEVER]

    async with run_senders(service):
        await post_mails(service, "ann+stalled@example.com", "ann@example.com")
        await eventually(lambda: has_received(server, 1))
        await eventually(lambda: service.run_sql("select from mails where attempts > 0 and outcome is null"))

    assert await mail_states(service) == {"ann+stalled@example.com": (None, 1), "ann@example.com": ("sent", 1)}
    assert [address for _, command, address in server.commands if command == "RCPT"].count(
        "ann+stalled@example.com"
    ) == 1


async def test_several_processes_send_each_mail_once(settings: Settings, service: Service, server: MailServer) -> None:
    async with running_events(settings.model_copy(update=server.settings)) as another, run_senders(service, another):
        await post_mails(service, *PEOPLE)
        await wait_until_all_ended(service)

    assert sorted(server.recipients()) == sorted(PEOPLE)


async def test_a_sender_whose_session_ends_goes_on_with_another_session(service: Service, server: MailServer) -> None:
    async with run_senders(service):
        await post_mails(service, "ann@example.com")
        await wait_until_all_ended(service)
        await service.run_sql(
            "select pg_terminate_backend(pid) from pg_locks"
            " where relation = 'mail_sender'::regclass and database = (select oid from pg_database"
            " where datname = current_database())"
        )
        await post_mails(service, *PEOPLE)
        await wait_until_all_ended(service)

    assert sorted(server.recipients()) == sorted(["ann@example.com", *PEOPLE])


async def test_an_accepted_mail_is_stored_before_anything_else_is_sent_on_its_connection(
    service: Service, server: MailServer
) -> None:
    # As long as the row of the first mail is locked, it cannot be stored as sent.
    await post_mails(service, *PEOPLE)
    async with service.database.pool.connection() as connection, connection.transaction():
        await connection.execute("select from mails for no key update")
        async with run_senders(service):
            await eventually(lambda: has_received(server, sender.MAX_CONNECTIONS))
            assert not any(received.is_proved for received in server.received)
            assert len(server.received) == sender.MAX_CONNECTIONS
            await connection.execute("commit")
            await connection.execute("begin")
            await wait_until_all_ended(service)

    assert sorted(server.recipients()) == sorted(PEOPLE)


async def test_no_mail_is_lost_or_sent_again_when_the_database_drops_every_connection(
    service: Service, server: MailServer
) -> None:
    others = """
        select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and usename = current_user and pid <> %s
    """
    async with run_senders(service):
        with psycopg.connect(service.database.url, autocommit=True) as connection:
            for count in (0, 8, 16, 24, 32):
                await post_mails(service, *PEOPLE[count : count + 8])
                await eventually(lambda count=count: has_received(server, count + 4))
                connection.execute(others, [connection.info.backend_pid])
                await eventually(lambda: is_back(service))
        await wait_until_all_ended(service)

    assert {received.recipient for received in server.received} == {*PEOPLE}
    assert not any(received.is_wrong for received in server.received)


async def is_back(service: Service) -> bool:
    with contextlib.suppress(psycopg.OperationalError, PoolTimeout):
        return bool(await service.run_sql("select true"))
    return False
