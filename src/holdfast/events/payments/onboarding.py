"""Onboarding: the account of an organizer at the payment processor, and whether money can be paid out to it."""

import datetime as dt
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from holdfast.events.payments import returning
from holdfast.events.payments.due import Line, Taken
from holdfast.events.problems import PAYMENTS_NOT_CONFIGURED
from holdfast.events.processor.processor import NewAccount, Processor, Refused, Unreachable
from holdfast.events.resources import Concluded, Reader, Steps, Tx
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.problems import FORBIDDEN, SERVICE_UNAVAILABLE, refuses


class CreateOnboardingLink(Command):
    """Asks for a page on which the organizer can be made ready to be paid out."""


class Onboarding(Struct):
    """The account of an organizer at the payment processor."""

    stripe_account_id: str
    onboarding_complete: Annotated[bool, Meta(description="Whether paid events can be paid for.")]
    onboarding_url: Annotated[
        str, Meta(description="A human must open it in a browser, within minutes and once; ask again for a new one.")
    ]


@refuses(FORBIDDEN, PAYMENTS_NOT_CONFIGURED)
async def create_link(steps: Steps, caller: Caller, command: CreateOnboardingLink) -> Concluded[Onboarding]:
    """Make a link at which a human must give the payment processor an identity and a bank account, soon.

    Nobody can pay for paid events before `onboarding_complete`.
    """
    if caller.tenant_id is None:
        raise FORBIDDEN("An admin key has no payouts of its own.", hint="Use a key of the organizer.")
    organizer_id = caller.tenant_id
    processor = steps.resources.require_processor()
    settings, secret = steps.resources.settings, steps.resources.secret
    try:
        account_id = await _account(steps, processor, organizer_id)
        is_ready = await processor.is_ready(account_id)
        url = await processor.onboarding_url(
            account_id,
            again_url=settings.base_url + returning.again_path(secret, organizer_id),
            done_url=settings.base_url + returning.DONE,
        )
    except Unreachable as error:
        raise SERVICE_UNAVAILABLE("The payment processor cannot be reached right now.", retry_after=30) from error
    except Refused as error:
        raise SERVICE_UNAVAILABLE(f"The payment processor refuses the account: {error}", retry_after=300) from error

    async def store(tx: Tx) -> Onboarding:
        await _store_readiness(tx, account_id, is_ready)
        return Onboarding(account_id, is_ready, url)

    return await steps.conclude(store)


@refuses(PAYMENTS_NOT_CONFIGURED)
async def create_link_again(steps: Steps, caller: Caller, command: CreateOnboardingLink) -> Concluded[Onboarding]:
    """Make another link for the organizer whose last one does not work any more."""
    return await create_link(steps, caller, command)


async def attend(steps: Steps, taken: Taken) -> dt.datetime | None:
    """Ask the processor whether an organizer is ready. The processor says when to ask again."""
    account_id = await steps.read(
        lambda reader: reader.value(
            "select account_id from payout_accounts where organizer_id = %(id)s", {"id": taken.key}
        )
    )
    is_ready = await steps.resources.require_processor().is_ready(account_id)
    await steps.transact(lambda tx: _store_readiness(tx, account_id, is_ready))
    return None


LINE = Line("payout_accounts", "organizer_id", attend, at_once=2)


async def _account(steps: Steps, processor: Processor, organizer_id: int) -> str:
    """The account of an organizer; it is created if there is none."""
    organizer, known = await steps.read(partial(_find, organizer_id=organizer_id))
    if known is not None:
        return known
    account_id = await processor.create_account(organizer)
    return await steps.transact(lambda tx: add_account(tx, organizer_id, account_id))


async def add_account(tx: Tx, organizer_id: int, account_id: str, *, is_ready: bool = False) -> str:
    """Store the account of an organizer, unless another was stored before. Returns the one that is stored."""
    stored = await tx.value(
        """
        insert into payout_accounts (organizer_id, account_id) values (%(organizer_id)s, %(account_id)s)
            on conflict (organizer_id) do update set account_id = payout_accounts.account_id
        returning account_id
        """,
        {"organizer_id": organizer_id, "account_id": account_id},
    )
    if is_ready:
        await _store_readiness(tx, stored, is_ready)
    return stored


async def _find(reader: Reader, organizer_id: int) -> tuple[NewAccount, str | None]:
    found = await reader.tuples(
        """
        select id, email, coalesce(name, slug, email), account_id
          from users left join payout_accounts on organizer_id = users.id
         where users.id = %(id)s and email is not null
        """,
        {"id": organizer_id},
    )
    if not found:
        raise SERVICE_UNAVAILABLE("The organizer was removed at the same time.", retry_after=1)
    [(*organizer, account_id)] = found
    return NewAccount(*organizer), account_id


async def _store_readiness(tx: Tx, account_id: str, is_ready: bool) -> None:
    await tx.run(
        """
        update users set payouts_ready = %(is_ready)s
          from payout_accounts
         where users.id = organizer_id and account_id = %(account_id)s and payouts_ready <> %(is_ready)s
        """,
        {"account_id": account_id, "is_ready": is_ready},
    )
