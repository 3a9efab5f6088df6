"""The page `/oauth/authorize` of a service that is no authorization server: it says where apps are connected."""

from urllib.parse import urlsplit

from starlette.routing import BaseRoute

from holdfast.accounts.door import Door
from holdfast.accounts.oauth.terms import AUTHORIZE
from holdfast.accounts.sessions import Session
from holdfast.kit.handler import Reply, Request
from holdfast.kit.pages.language import language_of


def routes(door: Door, issuer: str) -> list[BaseRoute]:
    """The route of the page. `issuer`: that of the authorization server that is used instead; empty: there is none."""

    async def answer(_: Session, request: Request) -> Reply:
        host = urlsplit(issuer).netloc
        return door.site.page("oauth/absent.html", language=language_of(request), host=host)

    return [door.route(AUTHORIZE, "authorize", answer)]
