"""The reason of a failed mail is what the mail server said."""

import pytest

from holdfast.events.mails.failure_reasons import FailureReason, failure_reason
from tests.events.mails.post import ANN, BOB, Post


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("550 5.1.1 <ann@example.com>: Recipient address rejected", "unknown"),
        ("550-5.1.1 The email account that you tried to reach does not exist. 550 5.1.1 Try again", "unknown"),
        ("550 no such user here", "unknown"),
        ("553 mailbox name not allowed", "unknown"),
        ("550 5.2.1 mailbox disabled", "unknown"),
        ("550 5.1.8 sender address has a bad domain", "refused"),
        ("552 5.2.2 over quota", "full"),
        ("552 over quota", "full"),
        ("554 5.7.1 rejected by policy", "unwanted"),
        ("550 5.7.26 the sender is unauthenticated", "unwanted"),
        ("554 no", "unwanted"),
        ("552 5.3.4 message too big", "refused"),
        ("555 unknown parameter", "refused"),
        ("451 4.7.1 greylisted", "late"),
        ("452 4.2.2 over quota for three days", "late"),
        ("Connection lost", "late"),
        ("", "late"),
        ("9" * 1_000, "late"),
    ],
)
def test_an_error_of_a_mail_server_has_a_reason(error: str, reason: FailureReason) -> None:
    assert failure_reason(error) == reason


async def test_a_mail_that_never_reached_a_mail_server_has_a_reason(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    event = await post.organizer.create_event()
    await post.register(event["id"], BOB, ANN)
    # As an address may be stored since a time before addresses were checked.
    await post.service.run_sql("update mails set recipient = 'a<b>@example.com' where recipient = %(bob)s", bob=BOB)
    await post.service.run_sql("update mails set kind = 'poem' where recipient = %(ann)s", ann=ANN)

    assert await post.deliver() == []

    errors = await post.service.run_sql("select error from mails where outcome = 'failed' order by id")
    assert [failure_reason(error) for (error,) in errors] == ["no_address", "unwritten"]
