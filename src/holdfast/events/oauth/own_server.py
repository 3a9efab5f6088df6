"""The service as its own authorization server: what clients may do for organizers, and where they ask for it."""

from starlette.routing import BaseRoute

from holdfast.accounts.door import Door
from holdfast.accounts.oauth import absent, consent, endpoints, handover, trusted_auth
from holdfast.accounts.oauth.another_server import AnotherServer
from holdfast.accounts.oauth.clients import Clients
from holdfast.accounts.oauth.terms import Terms
from holdfast.events.oauth.model import SCOPES
from holdfast.events.resources import Database
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.limits import Limits

ASKED = ("read_events", "write_events")
"""The scopes of a client that asks for none. Keys are made and ended only by those who ask for that."""


def terms(settings: Settings) -> Terms:
    """What clients may do."""
    base = settings.base_url
    return Terms(base, f"{base}/mcp", SCOPES, ASKED, f"{base}/agents.md", SITE)


def routes(database: Database, door: Door, limits: Limits) -> list[BaseRoute]:
    """The routes of the authorization server; if it is off, those that there are in any case."""
    settings = database.resources.settings
    keys = trusted_auth.routes(database, limits)
    if settings.handover_url:
        server = AnotherServer(
            settings.handover_url,
            settings.handover_id,
            settings.handover_secret,
            settings.handover_profile,
            settings.handover_audience,
        )
        return [*handover.routes(database, terms(settings), server, door, limits), *keys]
    if not settings.has_own_server:
        return [*absent.routes(door, settings.oauth_issuer), *keys]
    known = Clients(database, database.resources.documents, limits)
    return [
        *consent.routes(database, terms(settings), known, door, limits),
        *endpoints.routes(database, terms(settings), limits),
        *keys,
    ]
