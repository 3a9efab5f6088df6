"""What can be done with users."""

from holdfast.events.settings import Tx
from holdfast.events.users import sql
from holdfast.events.users.model import User
from holdfast.kit.operation import Caller, Page, Paged, page


async def list(tx: Tx, caller: Caller, command: Paged) -> Page[User]:
    """List users, oldest first.

    An admin key sees everyone; an organizer key sees itself and the people registered for its events.
    """
    offset, limit = command.offset, command.limit + 1
    if caller.tenant_id is None:
        return page(await sql.list_users(tx, offset, limit), command)
    return page(await sql.list_users_seen_by(tx, caller.tenant_id, offset, limit), command)
