"""The events service: its parts, its endpoint for agents, and the process that runs it."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from holdfast import accounts
from holdfast.accounts.agents.approvals import RequestApprovals, RequestFinder
from holdfast.accounts.part import account_part
from holdfast.accounts.sessions import Sessions
from holdfast.accounts.signed_in_pages import SessionGate, SignedInPages
from holdfast.accounts.webhooks import part as webhooks
from holdfast.events import ownership, resources
from holdfast.events.agents.actions import AgentActionLog
from holdfast.events.agents.approval_facts import approval_gate, find_credentials, read_facts
from holdfast.events.api import DESCRIPTION, INSTRUCTIONS, OPERATIONS, TITLE, VERSION
from holdfast.events.bounds import STREAMS
from holdfast.events.console import part as console
from holdfast.events.console.account.account_pages import ACCOUNT_TEMPLATE
from holdfast.events.console.check_in.check_in_pages import SIGN_OUT_SCRIPTS
from holdfast.events.console.frame import HINT, HOME, first_page, navigation
from holdfast.events.context import Context
from holdfast.events.documents import discovery, openapi
from holdfast.events.draws.part import draws_part
from holdfast.events.events import part as events
from holdfast.events.keys import operations as key_operations
from holdfast.events.keys import part as keys
from holdfast.events.log import part as log
from holdfast.events.log.generations import begin_generations
from holdfast.events.mails import part as mails
from holdfast.events.oauth import part as oauth
from holdfast.events.oauth.credentials import Credentials
from holdfast.events.oauth.issuer import configured_issuer
from holdfast.events.organizers.operations import API_KEY_HEADER
from holdfast.events.pages import part as pages
from holdfast.events.payments import part as payments
from holdfast.events.photos import part as photos
from holdfast.events.pricing import part as pricing
from holdfast.events.problems import ALL
from holdfast.events.push import part as push
from holdfast.events.queues import part as queues
from holdfast.events.queues.places import QUEUE_DRAWS
from holdfast.events.registrations import part as registrations
from holdfast.events.registrations.people_in_answers import IDEMPOTENCY
from holdfast.events.resources import Database
from holdfast.events.seats import drawn
from holdfast.events.seats import part as seats
from holdfast.events.seats.drawn import EVENT_DRAWS
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.events.users.directory import UserDirectory
from holdfast.events.webhooks.messages import MESSAGES
from holdfast.kit import mcp
from holdfast.kit.contract.problems import COMMON_PROBLEMS
from holdfast.kit.http.event_streams import Streams
from holdfast.kit.operations.runner import Runner
from holdfast.kit.process.discovery import RESOURCE_PATH, ServiceDescription, reverse_dns
from holdfast.kit.process.part import Endpoints, Part
from holdfast.kit.process.service import Service
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.security.api_keys import KeyRing

DRAWS = draws_part((QUEUE_DRAWS, EVENT_DRAWS), drawn.place_due)
"""Draws queues and events whenever they are due, and places the entries of events."""

PARTS: Sequence[Part[Context]] = (
    account_part("users", UserDirectory(), key_operations.KEY_LIMITS, Context),
    console.PART,
    pages.PART,
    mails.PART,
    ownership.PART,
    payments.PART,
    seats.PART,
    queues.PART,
    log.PART,
    events.PART,
    registrations.PART,
    push.PART,
    DRAWS,
    oauth.PART,
    photos.PART,
    keys.PART,
    pricing.PART,
    webhooks.PART,
)

ALL_OPERATIONS = (*OPERATIONS, *(operation for part in PARTS for operation in part.operations))
"""All operations that the service runs: those of the table, and those of pages."""


def service(database: Database) -> Service:
    """The events service on its database."""
    settings, limits = database.resources.settings, database.resources.limits
    runner = Runner(ALL_OPERATIONS, database, IDEMPOTENCY, AgentActionLog(), approval_gate(settings.base_url))
    # Requests that wait until their key is found count as work that waits.
    ring = KeyRing(database, key_operations.find_callers, wait_context=runner.admission.work)
    context = Context(
        database,
        runner,
        console_runner=Runner(ALL_OPERATIONS, database, IDEMPOTENCY),
        limits=limits,
        streams=Streams(
            STREAMS,
            {"address": settings.streams_per_address, "tenant": settings.streams_per_organizer},
            settings.max_streams,
        ),
        signed_in=signed_in_pages(database),
        approvals=RequestApprovals(RequestFinder(OPERATIONS, database, find_credentials, read_facts), runner),
    )
    credentials = Credentials(ring, database, configured_issuer(settings), accepts_own_tokens=settings.has_own_server)
    documents = discovery.documents(OPERATIONS, openapi_json(settings.base_url), settings)
    for_agents = agent_endpoint(settings, [*documents.values()], credentials)
    own_endpoints = Endpoints(
        [
            *discovery.routes(service_description(for_agents, settings), documents, settings),
            *SITE.assets("icon.svg", *SIGN_OUT_SCRIPTS),
        ],
        caches=[ring.forgetting, credentials.forgetting],
        closing=[database.resources.texts.close],
    )
    return Service(
        database=database,
        runner=runner,
        operations=OPERATIONS,
        parts=PARTS,
        endpoints=Endpoints.joined([own_endpoints, *(part.endpoints(context) for part in PARTS)]),
        authenticate=ring.caller,
        limits=limits,
        agents=for_agents,
        site=SITE,
        streams=context.streams,
        per_machine_state=settings.per_machine_state(),
        drain_seconds=settings.drain_seconds,
        metrics_token=settings.metrics_token,
    )


@lru_cache(4)
def openapi_json(base_url: str) -> str:
    """The OpenAPI document as JSON. As objects it would take ten times the memory."""
    problems = (*COMMON_PROBLEMS, *ALL)
    spec = openapi.document(TITLE, VERSION, DESCRIPTION, base_url, OPERATIONS, problems, MESSAGES)
    return msgspec.json.encode(spec).decode()


def signed_in_pages(database: Database) -> SignedInPages:
    """The pages of organizers who are signed in."""
    resources = database.resources
    base_url = resources.settings.base_url
    return SignedInPages(
        SessionGate(Sessions(database, UserDirectory(), base_url), SITE),
        SITE,
        resources.limits,
        resources.secret,
        base_url,
        home=HOME,
        navigation=navigation,
        account_template=ACCOUNT_TEMPLATE,
        first_page=first_page,
        hint_template=HINT,
        scripts=SIGN_OUT_SCRIPTS,
    )


def service_description(for_agents: mcp.EndpointConfig, settings: Settings) -> ServiceDescription:
    """What the discovery documents say about the service."""
    issuer = settings.authorization_server
    return ServiceDescription(
        for_agents,
        OPERATIONS,
        DESCRIPTION,
        manual="/agents.md",
        key="An organizer's API key, from POST /api/organizers/register.",
        credential=f"An organizer's API key{f', or an access token of {issuer}' if issuer else ''}.",
        by_oauth=bool(issuer),
        api_key_header=API_KEY_HEADER,
    )


def agent_endpoint(
    settings: Settings, documents: Sequence[mcp.Document], credentials: Credentials
) -> mcp.EndpointConfig:
    """The endpoint for agents at `/mcp`: its instructions, documents and credentials."""
    return mcp.EndpointConfig(
        name=reverse_dns(settings.base_url, "events"),
        title=TITLE,
        version=VERSION,
        base_url=settings.base_url,
        instructions=INSTRUCTIONS,
        documents=documents,
        limit="messages",
        authenticate=credentials.caller,
        resource_metadata=f"{settings.base_url}{RESOURCE_PATH}/mcp" if settings.authorization_server else None,
        scope=" ".join(oauth.DEFAULT_SCOPES) if settings.authorization_server else "",
    )


EVENTS = ServiceProcess(
    name="events",
    title="Holdfast Events",
    settings=Settings,
    resources=resources.build,
    build=service,
    schema_folders=(accounts.FOLDER / "schema", Path(__file__).parent / "schema"),
    factory="holdfast.events.service:worker",
    sealed=tuple(table for part in PARTS for table in part.sealed),
    after_restore=begin_generations,
    other_services={"Holdfast Inventory": "ledger"},
)
worker = EVENTS.worker
