"""Ownership of an organizer that was registered with an address before the owner of the address signed in.

Every visitor can register an organizer with another person's address. The owner, who signs in by a mailed link for the
first time, sees what was made with it, and keeps it all or ends it all. Erasing a person ends it too.
"""

from collections.abc import Sequence

from msgspec import Struct

from holdfast.accounts import sessions
from holdfast.events.agents import actions as agent_actions
from holdfast.events.context import Context
from holdfast.events.events import operations as events
from holdfast.events.events.model import CHANGE_CHANNEL, CancelEvent
from holdfast.events.keys.model import ApiKey, ListKeys
from holdfast.events.keys.operations import list as list_keys
from holdfast.events.oauth.operations import move_subjects, unlink_all
from holdfast.events.organizers import accounts
from holdfast.events.payments.payout_rows import end_account
from holdfast.events.people import operations
from holdfast.events.people.model import AccountSelector, Erasure
from holdfast.events.people.proof import EraseOwnData
from holdfast.events.queues.operations import end_all as end_queues
from holdfast.events.resources import Reader, Steps, Tx
from holdfast.events.users.directory import UserDirectory
from holdfast.kit.background.tasks import TaskHandler
from holdfast.kit.contract.caller import Caller, system
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import FORBIDDEN, NOT_FOUND, refuses
from holdfast.kit.postgres.transactions import Task
from holdfast.kit.process.part import Part
from holdfast.kit.webhooks.endpoints import delete_all as delete_webhooks

MAX_TITLES = 5
"""The most events that are shown by their titles."""


class GetUnprovedAccount(Command):
    """Asks for the contents of an account that were made before its address was proved."""

    account_id: int


class UnprovedAccount(Struct):
    """The contents of an account that were made before its address was proved.

    keys         the active keys
    apps         the number of connected apps
    events       the number of events; `titles`: the titles of the last ones
    people       the number of people who have a place at events to come
    """

    name: str | None
    slug: str | None
    has_password: bool
    has_payouts: bool
    apps: int
    events: int
    titles: list[str]
    people: int
    queues: int
    keys: Sequence[ApiKey] = ()


class ProveAccount(Command):
    """The owner's answer about what was made before.

    keep    whether it belongs to the owner; if not, it is ended
    """

    account_id: int
    session_id: int
    keep: bool


class CancelEventsArguments(Struct):
    """The arguments of `CANCEL`."""

    organizer_id: int


CANCEL = Task("cancel_events_of_ended_organizer", CancelEventsArguments)
"""Cancel the events of an ended organizer."""


async def get_unproved_account(reader: Reader, caller: Caller, command: GetUnprovedAccount) -> UnprovedAccount:
    """Read the contents of an account that were made before its address was proved."""
    before = await reader.row(
        UnprovedAccount,
        """
        select name, slug, password_hash is not null as has_password,
               exists (select from payout_accounts where organizer_id = users.id) as has_payouts,
               (select count(distinct client_id) from oauth_grants
                 where account_id = users.id and ended_at is null and expires_at > now()) as apps,
               (select count(*) from events where organizer_id = users.id and cancelled_at is null) as events,
               array(select title from events where organizer_id = users.id and cancelled_at is null
                      order by id desc limit %(titles)s) as titles,
               (select coalesce(sum(registered_count + waitlisted_count), 0)::bigint from events
                 where organizer_id = users.id and cancelled_at is null and datetime > now()) as people,
               (select count(*) from queues where organizer_id = users.id and deleted_at is null) as queues
          from users where id = %(id)s
        """,
        {"id": command.account_id, "titles": MAX_TITLES},
    )
    assert before  # accounts with a session are not deleted
    before.keys = await list_keys(reader, system(command.account_id), ListKeys())
    return before


async def prove(tx: Tx, caller: Caller, command: ProveAccount) -> None:
    """Keep or end what was made before the address was proved. Works once."""
    id = command.account_id
    if command.keep:
        await operations.join_organizer(tx, id)
        if await accounts.prove(tx, id):
            await tx.notify(CHANGE_CHANNEL)  # before this process answers; a trigger lets the others know
        return
    email = await accounts.lock_unproved(tx, id)
    if email is None:
        return
    await end_stranger(tx, id, except_session_id=command.session_id)
    account = await UserDirectory().prove(tx, email)
    await sessions.move(tx, command.session_id, account.id)
    await move_subjects(tx, id, account.id)


async def end_stranger(tx: Tx, organizer_id: int, *, except_session_id: int | None = None) -> None:
    """End an organizer that was registered with another person's address, and everything in its account.

    Events are cancelled soon after, one by one. No caller has access any more to stop that. A person who proves the
    address can use it again.

    except_session_id    a session that continues
    """
    if await accounts.lock_unproved(tx, organizer_id) is None:
        return
    await accounts.end_unproved(tx, organizer_id, except_session_id)
    await end_account(tx, organizer_id)
    await end_queues(tx, organizer_id)
    await agent_actions.forget_organizer(tx, organizer_id)
    await delete_webhooks(tx, organizer_id)
    await tx.notify(CHANGE_CHANNEL)
    await tx.enqueue(CANCEL, CancelEventsArguments(organizer_id))


async def cancel_events(steps: Steps, arguments: CancelEventsArguments) -> None:
    """Cancel the events of an ended organizer, as organizers do: attendees are notified, and payments refunded."""
    organizer_id = arguments.organizer_id

    async def cancel(tx: Tx) -> bool:
        id = await tx.value(
            """
            (select id from events
              where organizer_id = %(id)s and cancelled_at is null and datetime > now()
              order by organizer_id, datetime, id limit 1)
            union all
            -- One that is over, but would go on.
            (select id from events
              where recurrence_frequency <> 'none' and cancelled_at is null and continued_at is null
                and datetime <= now() and organizer_id = %(id)s
              limit 1)
            limit 1
            """,
            {"id": organizer_id},
        )
        if id is not None:
            await events.cancel(tx, system(organizer_id), CancelEvent(event_id=id))
        return id is not None

    while await steps.transact(cancel):
        pass
    # Mails were held while the owner was unknown. Mails about cancellations are still true.
    release = "insert into mail_releases (organizer_id) select id from users where id = %(id)s on conflict do nothing"
    await steps.transact(lambda tx: tx.run(release, {"id": organizer_id}))


async def erase(tx: Tx, selector: AccountSelector) -> Erasure:
    """Erase a person's data, as `people.operations.erase` does.

    An organizer that was registered with the address, and that the person has not confirmed, ends as if the person had
    rejected it: afterwards it could not be rejected any more.
    """
    return await operations.erase(tx, selector, _end)


@refuses(NOT_FOUND, FORBIDDEN)
async def erase_own(tx: Tx, caller: Caller, command: EraseOwnData) -> Erasure:
    """Erase the data of the person to whom a link belongs."""
    return await erase(tx, command.selector(command.holder))


async def _end(tx: Tx, organizer_id: int) -> None:
    await unlink_all(tx, organizer_id)
    await end_stranger(tx, organizer_id)


PART: Part[Context] = Part(tasks=(TaskHandler(CANCEL, cancel_events),))
