"""What `holdfast check` looks at in the accounts of a service."""

from typing import Any, LiteralString

from holdfast.accounts.addresses import list_different
from holdfast.kit.process.checks.inspection import Inspection
from holdfast_verify.terminal import names_text


async def check_mailboxes(table: LiteralString, inspection: Inspection[Any]) -> None:
    """Look whether each mailbox has one account in a table."""
    different = [f"{address.id} ({address.email})" for address in await list_different(inspection.database, table)]
    if different:
        inspection.warning(
            f"These accounts have the mailbox of another account, under another spelling: {names_text(different, 5)}.",
            "Ask the owner of the mailbox which account to keep, and erase the other one by its id.",
        )
    inspection.ok("No two accounts have the same mailbox.")
