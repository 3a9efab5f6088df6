"""The page on why just so many of a variant can be sold: the computation for every pool that it draws on."""

from holdfast.accounts.sessions import Session
from holdfast.inventory.availability.model import ExplainAvailability, Explanation
from holdfast.inventory.console.frame import HOME, Console, merchant
from holdfast.inventory.console.variants.variant_names import names_of
from holdfast.kit.contract.command import check
from holdfast.kit.contract.problems import NOT_FOUND, VALIDATION_FAILED, Problem
from holdfast.kit.http.handler import Reply, Request, read_query
from holdfast.kit.http.index import Route

VARIANT = f"{HOME}/variant"


class VariantPage:
    """Answers requests for the computation of a variant."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._explain = console.run["explain_availability"]

    def routes(self) -> list[Route]:
        return [self._console.route(VARIANT, "variant", self.show)]

    async def show(self, session: Session, request: Request) -> Reply:
        """Show what each pool allows of a variant."""
        try:
            command = check(ExplainAvailability, {"variant_gid": read_query(request.query).get("gid")})
        except Problem as problem:
            if problem.type is VALIDATION_FAILED:
                raise NOT_FOUND() from problem
            raise
        explanation: Explanation = await self._explain(merchant(session), command)
        names = await names_of(self._console, session, request, [explanation.variant_gid])
        return self._console.page(
            session,
            request,
            "variants/variant.html",
            found=explanation,
            name=names[explanation.variant_gid],
            scripts=["live.js"],
        )
