"""The first page of the console: the shop's pools."""

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.pools.model import ListPools, PoolList
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request, read_query

SHOWN = 50


class PoolsPage:
    """Answers requests for the list of pools."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._list = console.run["list_pools"]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(HOME, "pools", self.list)]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the shop's pools, oldest first; those that are archived by themselves."""
        query = read_query(request.query)
        archived = query.get("status") == "archived"
        asked = {"limit": SHOWN, "cursor": query.get("cursor") or None, "status": "archived" if archived else None}
        found: PoolList = await self._list(merchant(session), check(ListPools, asked))
        return self._console.page(
            session, request, "pools.html", pools=found.pools, after=found.next_cursor, archived=archived
        )
