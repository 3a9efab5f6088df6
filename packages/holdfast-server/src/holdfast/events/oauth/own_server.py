"""The service as its own authorization server: the terms for clients, and the routes."""

from holdfast.accounts.signed_in_pages import SignedInPages
from holdfast.events.oauth import handover
from holdfast.events.oauth.handover import AnotherServer
from holdfast.events.oauth.model import SCOPES
from holdfast.events.oauth_server import consent, endpoints
from holdfast.events.oauth_server.clients import Clients
from holdfast.events.oauth_server.terms import Terms
from holdfast.events.resources import Database
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.http.index import Route
from holdfast.kit.running.rate_limits import Limits
from holdfast.kit.running.runner import Runner

DEFAULT_SCOPES = ("read_events", "write_events")
"""The scopes of a client that asks for none. Only clients that ask for `manage_keys` can create and revoke keys."""


def terms(settings: Settings) -> Terms:
    """The terms for clients: addresses and scopes."""
    base = settings.base_url
    return Terms(base, f"{base}/mcp", SCOPES, DEFAULT_SCOPES, f"{base}/agents.md", SITE)


def routes(database: Database, runner: Runner, signed_in: SignedInPages, limits: Limits) -> list[Route]:
    """The routes of the authorization server; if it is off, only the routes that exist in any case."""
    settings = database.resources.settings
    keys = handover.trusted_auth_routes(database, limits)
    if settings.handover_url:
        server = AnotherServer(
            settings.handover_url,
            settings.handover_id,
            settings.handover_secret,
            settings.handover_profile,
            settings.handover_audience,
        )
        return [*handover.routes(database, terms(settings), server, signed_in, limits), *keys]
    if not settings.has_own_server:
        return [*consent.missing_server_routes(signed_in, settings.oauth_issuer), *keys]
    known = Clients(database, database.resources.documents, limits)
    return [
        *consent.routes(database, terms(settings), known, signed_in, limits),
        *endpoints.routes(runner, terms(settings), known, limits),
        *keys,
    ]
