"""Mails that were not sent, on the command line."""

from tests.helpers.command_line import run_events_command
from tests.helpers.events_service import Service

WAITS = "insert into mails (kind, thread, recipient, arguments) values (%(kind)s, 'a', %(to)s, '{}') returning id"


async def test_mails_that_failed_or_wait_are_listed_and_tried_again(service: Service) -> None:
    [(waiting,)] = await service.run_sql(WAITS, kind="seat", to="ann@example.com")
    [(failed,)] = await service.run_sql(WAITS, kind="seat", to="bob@example.com")
    await service.run_sql(
        "update mails set outcome = 'failed', ended_at = now(), attempts = 2, error = '550 no\tsuch person'"
        " where id = %(id)s",
        id=failed,
    )

    before = [line.split("\t") for line in (await run_events_command(service, "mail", "list")).stdout.splitlines()]
    [(second_waiting,)] = await service.run_sql(WAITS, kind="seat", to="cas@example.com")
    first_of_each = await run_events_command(service, "mail", "list", "--limit", "1")
    await service.run_sql("delete from mails where id = %(id)s", id=second_waiting)
    retried = await run_events_command(service, "mail", "retry", str(failed))
    after = [line.split("\t") for line in (await run_events_command(service, "mail", "list")).stdout.splitlines()]

    assert [row[:5] for row in before] == [
        [str(failed), "failed", "seat", "bob@example.com", "2"],
        [str(waiting), "waiting", "seat", "ann@example.com", "0"],
    ]
    assert [row[-1] for row in before] == ["550 no such person", "-"]
    assert [line.split("\t")[0] for line in first_of_each.stdout.splitlines()] == [str(failed), str(waiting)]
    heading, more, *_ = first_of_each.stderr.splitlines()
    assert heading.split("\t")[:4] == ["ID", "STATE", "KIND", "ADDRESS"]
    assert more.startswith("Only 1 of the mails with the status waiting are listed.")
    assert more.endswith("holdfast events mail list --limit 10")
    assert retried.stdout == f"Mail {failed} is tried again.\n"
    assert [row[:2] for row in after] == [[str(waiting), "waiting"], [str(failed), "waiting"]]


async def test_an_unknown_mail_is_refused_in_one_line(service: Service) -> None:
    refusal = await run_events_command(service, "mail", "retry", "7")

    assert (refusal.returncode, refusal.stdout) == (1, "")
    assert refusal.stderr.startswith("No mail with the id 7 waits or has failed. This was looked for in ")


async def test_no_text_of_a_stranger_acts_on_the_terminal_of_an_operator(service: Service) -> None:
    ada = await service.organizer("Ada \x1b]0;owned\x07\u202e Events")
    event = await ada.create_event()
    await ada.register(event["id"], email="ann@example.com")
    await service.settle()
    # As an address may be stored since a time before addresses were checked.
    await service.run_sql("update mails set recipient = %(email)s", email="x\x1b[2j@example.com")

    [mail] = (await run_events_command(service, "mail", "list")).stdout.splitlines()
    [organizer] = (await run_events_command(service, "organizer", "list")).stdout.splitlines()

    assert mail.split("\t")[3] == r"x\x1b[2j@example.com"
    assert organizer.split("\t")[3] == r"Ada \x1b]0;owned\x07\u202e Events"
