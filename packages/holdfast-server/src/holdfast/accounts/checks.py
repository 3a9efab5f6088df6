"""What `holdfast check` looks at in the accounts of a service."""

from collections.abc import Awaitable, Callable
from typing import Any, LiteralString

from holdfast.accounts.identities import list_different
from holdfast.kit.postgres.database import Reader
from holdfast.kit.process.checks.inspection import Findings, Inspection, ok, warning

MAX_NAMED = 5


def check_mailboxes(table: LiteralString) -> Callable[[Inspection[Any], Reader[None]], Awaitable[Findings]]:
    """The check of a table of accounts: whether each mailbox has one account."""

    async def check(_: Inspection[Any], reader: Reader[None]) -> Findings:
        different = await list_different(reader, table)
        if not different:
            return [ok("No two accounts have the same mailbox.")]
        examples = ", ".join(f"{address.id} ({address.email})" for address in different[:MAX_NAMED])
        more = f" and {len(different) - MAX_NAMED} more" if len(different) > MAX_NAMED else ""
        return [
            warning(
                f"These accounts have the mailbox of another account, under another spelling: {examples}{more}.",
                "Ask the owner of the mailbox which account to keep, and erase the other one by its id.",
            )
        ]

    return check
