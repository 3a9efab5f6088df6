"""The pool in the path of a page."""

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.pools.model import GetPool, PoolWithMembers
from holdfast.inventory.stock.model import PoolId
from holdfast.kit.contract.command import Command
from holdfast.kit.http.handler import Request
from holdfast.kit.pages.forms import command_in_path

POOL = f"{HOME}/pools/{{pool_id}}"


class PoolPath(Command):
    """The parameters in the path of a page about a pool."""

    pool_id: PoolId


async def pool_of(
    console: Console, session: Session, request: Request, kind: type[PoolPath] = PoolPath
) -> PoolWithMembers:
    """The pool in the path of a request. Raises `not_found`.

    kind    the parameters of the path
    """
    command = GetPool(pool_id=command_in_path(kind, request).pool_id)
    return await console.run["get_pool"](merchant(session), command)
