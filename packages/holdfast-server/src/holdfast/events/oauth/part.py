"""What OAuth registers: the service as its own authorization server, or its part of another one."""

from holdfast.events.context import Context
from holdfast.events.oauth import external_consent
from holdfast.events.oauth.external_consent import AnotherServer
from holdfast.events.oauth.model import SCOPES
from holdfast.events.oauth_server import clients, consent, grants, tokens
from holdfast.events.oauth_server import endpoints as token_endpoints
from holdfast.events.oauth_server.clients import Clients
from holdfast.events.oauth_server.model import Terms
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.background.tasks import Schedule, TimedTask, in_batches, in_transaction
from holdfast.kit.process.part import Endpoints, Part

DEFAULT_SCOPES = ("read_events", "write_events")
"""The scopes of a client that asks for none. Only clients that ask for `manage_keys` can create and revoke keys."""


def terms(settings: Settings) -> Terms:
    """The terms for clients: addresses and scopes."""
    base = settings.base_url
    return Terms(base, f"{base}/mcp", SCOPES, DEFAULT_SCOPES, f"{base}/agents.md", SITE)


def endpoints(context: Context) -> Endpoints:
    """The routes of the authorization server; if it is off, only the routes that exist in any case."""
    database, signed_in, limits = context.database, context.signed_in, context.limits
    settings = database.resources.settings
    keys = external_consent.trusted_auth_routes(database, limits)
    if settings.handover_url:
        server = AnotherServer(
            settings.handover_url,
            settings.handover_id,
            settings.handover_secret,
            settings.handover_profile,
            settings.handover_audience,
        )
        return Endpoints([*external_consent.routes(database, terms(settings), server, signed_in, limits), *keys])
    if not settings.has_own_server:
        return Endpoints([*consent.missing_server_routes(signed_in, settings.oauth_issuer), *keys])
    client_finder = Clients(database, database.resources.documents, limits)
    return Endpoints(
        [
            *consent.routes(database, terms(settings), client_finder, signed_in, limits),
            *token_endpoints.routes(context.runner, terms(settings), client_finder, limits),
            *keys,
        ]
    )


PART = Part(
    operations=grants.OPERATIONS,
    endpoints=endpoints,
    timed_tasks=(
        TimedTask("forget_grants", Schedule.hourly(13), in_batches(grants.forget_grants)),
        TimedTask("forget_tokens", Schedule.hourly(19), in_batches(tokens.forget_tokens)),
        TimedTask("forget_clients", Schedule.hourly(43), in_batches(clients.forget_clients)),
        TimedTask(
            "rotate_trusted_auth_keys",
            Schedule.monthly(1, "04:41"),
            in_transaction(external_consent.rotate_trusted_auth_keys),
        ),
    ),
    keys=(external_consent.KEYS,),
    sealed=(external_consent.SEALED,),
)
