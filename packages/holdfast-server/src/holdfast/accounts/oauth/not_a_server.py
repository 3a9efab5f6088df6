"""The page `/oauth/authorize` of a service without an authorization server: it says where apps are connected."""

from urllib.parse import urlsplit

from starlette.routing import BaseRoute

from holdfast.accounts.oauth.terms import AUTHORIZE
from holdfast.accounts.sessions import Session
from holdfast.accounts.signed_in_pages import SignedInPages
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.pages.language import language_of


def routes(signed_in: SignedInPages, issuer: str) -> list[BaseRoute]:
    """Return the route of the page. `issuer`: the issuer of the authorization server in use; empty: there is none."""

    async def answer(_: Session, request: Request) -> Reply:
        host = urlsplit(issuer).netloc
        return signed_in.site.page("oauth/absent.html", language=language_of(request), host=host)

    return [signed_in.route(AUTHORIZE, "authorize", answer)]
