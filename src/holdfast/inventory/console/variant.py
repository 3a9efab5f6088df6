"""Why just so many of a variant can be sold: the reckoning for every pool that it draws on."""

from starlette.routing import BaseRoute

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.model import ExplainAvailability, Explanation
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.naming import names_of
from holdfast.kit.command import check
from holdfast.kit.handler import Reply, Request, read_query
from holdfast.kit.problems import NOT_FOUND, VALIDATION_FAILED, Problem

VARIANT = f"{HOME}/variant"


class VariantPage:
    """Answers requests for the reckoning of a variant."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._explain = console.run["explain_availability"]

    def routes(self) -> list[BaseRoute]:
        return [self._console.route(VARIANT, "variant", self.show)]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show what each pool allows of a variant."""
        try:
            asked = check(ExplainAvailability, {"variant_gid": read_query(request.query).get("gid")})
        except Problem as problem:
            if problem.type is VALIDATION_FAILED:
                raise NOT_FOUND() from problem
            raise
        found: Explanation = await self._explain(merchant(session), asked)
        names = await names_of(self._console, session, request, [found.variant_gid])
        return self._console.page(session, request, "variant.html", found=found, name=names[found.variant_gid])
