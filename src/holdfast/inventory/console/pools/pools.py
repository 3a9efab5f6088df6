"""The first page of the console: the shop's pools."""

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.pools.model import ListPools, PoolList
from holdfast.kit.contract.command import check
from holdfast.kit.http.handler import Reply, Request, read_query

PAGE_SIZE = 50


class PoolsPage:
    """Answers requests for the list of pools."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._list = console.run["list_pools"]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(HOME, "pools", self.list)]

    async def list(self, session: Session, request: Request) -> Reply:
        """List the shop's pools, oldest first; archived pools have a list of their own."""
        query = read_query(request.query)
        archived = query.get("status") == "archived"
        options = {
            "limit": PAGE_SIZE,
            "cursor": query.get("cursor") or None,
            "status": "archived" if archived else None,
        }
        pool_list: PoolList = await self._list(merchant(session), check(ListPools, options))
        return self._console.page(
            session,
            request,
            "pools/pools.html",
            pools=pool_list.pools,
            after=pool_list.next_cursor,
            archived=archived,
            scripts=["live.js"],
        )
