"""The operations on users."""

from holdfast.events.resources import Reader
from holdfast.events.users import sql
from holdfast.events.users.model import User
from holdfast.kit.contract.caller import Caller
from holdfast.kit.postgres.pagination import OffsetPage, Page, offset_page


async def list(reader: Reader, caller: Caller, command: OffsetPage) -> Page[User]:
    """List users, oldest first.

    An admin key sees everyone. An organizer key sees itself and the people registered for its events.
    """
    offset, limit = command.offset, command.limit + 1
    if caller.tenant_id is None:
        return offset_page(await sql.list_users(reader, offset, limit), command)
    return offset_page(await sql.list_users_seen_by(reader, caller.tenant_id, offset, limit), command)
