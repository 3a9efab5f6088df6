"""What the events service is put together of: its routes, its background work, and the process that runs it."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from holdfast import accounts
from holdfast.accounts import sessions
from holdfast.accounts.identities import unifying
from holdfast.accounts.sessions import Sessions
from holdfast.accounts.signed_in_pages import SessionGate, SignedInPages
from holdfast.accounts.signin.pages import SignInPages
from holdfast.accounts.stopped_mails.pages import StoppedMailsPages
from holdfast.events import ownership, resources
from holdfast.events.api import DESCRIPTION, EVERY, INSTRUCTIONS, OPERATIONS, SIGN_IN, TITLE, VERSION
from holdfast.events.bounds import STREAMS
from holdfast.events.console import routes as console_routes
from holdfast.events.console.account.account import ACCOUNT_TEMPLATE
from holdfast.events.console.check_in.check_in import SIGN_OUT_SCRIPTS
from holdfast.events.console.frame import HINT, HOME, first, places
from holdfast.events.console.live_changes import LiveChanges
from holdfast.events.documents import discovery, openapi
from holdfast.events.draws import drawing
from holdfast.events.events import hand_over, recurrence
from holdfast.events.keys import operations as keys
from holdfast.events.log import head_log, sealing
from holdfast.events.log import keys as log_keys
from holdfast.events.log import routes as log_routes
from holdfast.events.log.generations import begin_generations
from holdfast.events.mails import sending
from holdfast.events.oauth import handover, own_server
from holdfast.events.oauth.credentials import Credentials
from holdfast.events.oauth.issuer import configured_issuer
from holdfast.events.oauth_server import clients, grants, tokens
from holdfast.events.organizers import operations as organizers
from holdfast.events.pages import routes as page_routes
from holdfast.events.pages.event import cache
from holdfast.events.pages.event.live import LiveEvents
from holdfast.events.pages.organizer import LiveOrganizers, OrganizerCache
from holdfast.events.payments import background, reconciliation, webhooks
from holdfast.events.photos import routes as photo_routes
from holdfast.events.photos import sizes as images
from holdfast.events.pricing import operations as prices
from holdfast.events.problems import ALL
from holdfast.events.queues import pages as queue_routes
from holdfast.events.queues import release, release_tokens, room
from holdfast.events.queues.joining import QUEUE_DRAWS
from holdfast.events.registrations import retention, substring_search
from holdfast.events.registrations.stored_answers import PEOPLE_IN_ANSWERS
from holdfast.events.resources import Database
from holdfast.events.seats import drawn, settlement
from holdfast.events.seats.drawn import EVENT_DRAWS
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.events.users.directory import UserDirectory
from holdfast.kit import mcp
from holdfast.kit.background.tasks import Job, PeriodicJob, in_batches, in_transaction
from holdfast.kit.contract.problems import COMMON_PROBLEMS
from holdfast.kit.http.event_streams import Streams
from holdfast.kit.mail import outbox
from holdfast.kit.process.discovery import RESOURCE_PATH, ServiceDescription, reverse_dns
from holdfast.kit.process.service import Service
from holdfast.kit.process.service_process import ServiceProcess
from holdfast.kit.running.idempotency import Idempotency
from holdfast.kit.running.runner import Runner
from holdfast.kit.security.api_keys import KeyRing
from holdfast.kit.security.secrets import SealedTable

IDEMPOTENCY = Idempotency(people=PEOPLE_IN_ANSWERS)


async def draw(database: Database) -> None:
    """Draw queues and events whenever they are due, and place the entries of events, until cancelled."""
    await drawing.run(database, (QUEUE_DRAWS, EVENT_DRAWS), drawn.place_due)


unify_addresses = unifying("users")

LEADER_LOOPS = (
    settlement.run,
    release.run,
    sealing.run,
    head_log.run,
    draw,
    recurrence.run,
    sending.run_announcements,
    unify_addresses,
)
"""The loops that only the leader runs: one process at a time."""

LOOPS = (*LEADER_LOOPS, sending.run, images.run)
PAYMENT_LOOPS = (background.run,)
"""The loops that run only if there is a payment processor."""

SIGNING_KEYS = (release_tokens.KEYS, handover.KEYS)

JOBS = (Job(substring_search.INDEX, substring_search.index), Job(ownership.CANCEL, ownership.cancel_events))

PERIODIC = (
    PeriodicJob("* * * * *", in_transaction(prices.tick)),
    PeriodicJob("* * * * *", hand_over.file_anew),
    PeriodicJob("23 * * * *", images.clear_photos),
    PeriodicJob("29 * * * *", in_batches(IDEMPOTENCY.forget_answers)),
    PeriodicJob("17 3 * * *", in_batches(retention.forget_rejections)),
    PeriodicJob("37 3 * * *", retention.forget_registrants),
    PeriodicJob("47 3 * * *", in_batches(keys.forget_keys)),
    PeriodicJob("57 3 * * *", in_batches(prices.thin_histories)),
    PeriodicJob("7 4 * * *", in_batches(outbox.forget_mails)),
    PeriodicJob("11 * * * *", in_batches(sessions.forget_links)),
    PeriodicJob("21 4 * * *", in_batches(sessions.forget_known)),
    PeriodicJob("27 4 * * *", in_batches(sessions.forget_sessions)),
    PeriodicJob("13 * * * *", in_batches(grants.forget_grants)),
    PeriodicJob("19 * * * *", in_batches(tokens.forget_tokens)),
    PeriodicJob("43 * * * *", in_batches(clients.forget_clients)),
    PeriodicJob("*/10 * * * *", in_transaction(release.forget_visitors)),
    PeriodicJob("37 4 * * *", reconciliation.report),
    PeriodicJob("31 4 1 * *", in_transaction(release_tokens.rotate_queue_keys)),
    PeriodicJob("53 4 * * *", in_batches(webhooks.forget)),
    PeriodicJob("41 4 1 * *", in_transaction(handover.rotate_trusted_auth_keys)),
)


def service(database: Database) -> Service:
    """The events service on its database."""
    settings = database.resources.settings
    issuer = settings.authorization_server
    runner = Runner(EVERY, database, IDEMPOTENCY)
    # Under a crowd those who wait until their key is found are work that waits, too.
    ring = KeyRing(database, keys.find_callers, waiting=runner.admission.work)
    limits = database.resources.limits
    directory, secret = UserDirectory(), database.resources.secret
    # People in the console do not wait behind the programs of their own organizer.
    console_runner = Runner(EVERY, database, IDEMPOTENCY)
    sessions = Sessions(database, directory, settings.base_url)
    signed_in = SignedInPages(
        SessionGate(sessions, SITE),
        SITE,
        limits,
        secret,
        settings.base_url,
        first=first,
        places=places,
        scripts=SIGN_OUT_SCRIPTS,
    )
    signing_in = SignInPages(
        SIGN_IN,
        directory,
        runner,
        limits,
        signed_in,
        secret,
        base_url=settings.base_url,
        home=HOME,
        more=ACCOUNT_TEMPLATE,
        hint=HINT,
    )
    linked_events = cache.linked_event_cache(database, runner)
    queue_progress = room.progress_cache(database, runner)
    live_events, live_changes = LiveEvents(database), LiveChanges(database)
    organizer_cache = OrganizerCache(database, runner[page_routes.READ_ORGANIZER])
    live_organizers = LiveOrganizers(database, runner, organizer_cache)
    streams = Streams(
        STREAMS,
        {"address": settings.streams_per_address, "tenant": settings.streams_per_organizer},
        settings.max_streams,
    )
    spec = openapi.document(TITLE, VERSION, DESCRIPTION, settings.base_url, OPERATIONS, (*COMMON_PROBLEMS, *ALL))
    documents = discovery.documents(OPERATIONS, spec, settings)
    credentials = Credentials(ring, database, configured_issuer(settings), accepts_own_tokens=settings.has_own_server)
    for_agents = agents(settings, [*documents.values()], credentials)
    described = ServiceDescription(
        for_agents,
        OPERATIONS,
        DESCRIPTION,
        manual="/agents.md",
        key="An organizer's API key, from POST /api/organizers/register.",
        credential=f"An organizer's API key{f', or an access token of {issuer}' if issuer else ''}.",
        by_oauth=bool(issuer),
        api_key_header=organizers.HEADER,
    )
    return Service(
        database=database,
        runner=runner,
        operations=OPERATIONS,
        routes=[
            *page_routes.routes(
                database, runner, limits, linked_events, live_events, organizer_cache, live_organizers, streams
            ),
            *signing_in.routes(),
            *StoppedMailsPages(runner, limits, SITE, secret).routes(),
            *own_server.routes(database, runner, signed_in, limits),
            *console_routes.routes(
                signed_in,
                console_runner,
                {operation.name: console_runner[operation] for operation in OPERATIONS},
                settings,
                secret,
                live_changes,
                streams,
            ),
            *discovery.routes(described, documents, spec, settings),
            *SITE.assets("icon.svg", *SIGN_OUT_SCRIPTS),
            *photo_routes.routes(database.resources.photos, limits),
            *queue_routes.routes(database, runner, limits),
            *log_routes.routes(runner, limits),
            *queue_routes.progress_routes(database, limits, queue_progress),
            *webhooks.routes(database, runner, limits),
            *log_routes.verify_page_routes(database, limits),
        ],
        authenticate=ring.caller,
        caches=[
            ring.forgetting,
            credentials.forgetting,
            linked_events.forgetting,
            sessions.forgetting,
            live_events.listening,
            organizer_cache.forgetting,
            queue_progress.forgetting,
            live_organizers.listening,
            live_changes.listening,
            partial(log_keys.forgetting, database),
        ],
        limits=limits,
        agents=for_agents,
        site=SITE,
        streams=streams,
        loops=(*LOOPS, *(PAYMENT_LOOPS if database.resources.processor else ())),
        led=LEADER_LOOPS,
        closing=[database.resources.texts.close],
        kept_by_each=settings.kept_by_each(),
        drain_seconds=settings.drain_seconds,
        metrics_token=settings.metrics_token,
        jobs=JOBS,
        periodic=PERIODIC,
        signing_keys=SIGNING_KEYS,
    )


def agents(settings: Settings, documents: Sequence[mcp.Document], credentials: Credentials) -> mcp.EndpointConfig:
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
        scope=" ".join(own_server.DEFAULT_SCOPES) if settings.authorization_server else "",
    )


EVENTS = ServiceProcess(
    name="events",
    title="Holdfast Events",
    settings=Settings,
    resources=resources.build,
    build=service,
    schema_folders=(accounts.FOLDER, Path(__file__).parent),
    factory="holdfast.events.service:worker",
    sealed=(
        SealedTable("queue_signing_keys", "kid", "text"),
        SealedTable("log_keys", "id", "bigint"),
        SealedTable("idempotency_answers", "id", "bytea"),
        handover.SEALED,
    ),
    after_restore=begin_generations,
    other_services={"Holdfast Inventory": "ledger"},
)
worker = EVENTS.worker
