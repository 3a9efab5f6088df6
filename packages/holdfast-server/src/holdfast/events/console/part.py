"""What the console of signed-in organizers registers: its pages and their operations."""

from holdfast.accounts.agents.agents_page import AGENTS, connection_page_route
from holdfast.accounts.agents.limit_page import AgentLimitPage
from holdfast.accounts.agents.requests_page import RequestsPage
from holdfast.accounts.signed_in_pages import ACCOUNT
from holdfast.accounts.webhooks.webhook_pages import ZONE_SCRIPT, WebhookPages
from holdfast.events import api
from holdfast.events.check_in import operations as check_in
from holdfast.events.check_in import seat_handover
from holdfast.events.console.account import account_pages, branding_page, start_pages
from holdfast.events.console.account.account_pages import AccountPages
from holdfast.events.console.account.branding_page import BrandingPage
from holdfast.events.console.account.start_pages import StartPages
from holdfast.events.console.agents import agents_pages
from holdfast.events.console.agents.agents_pages import AppsPages
from holdfast.events.console.agents.approval_cards import describe
from holdfast.events.console.agents.keys_pages import KeysPages
from holdfast.events.console.check_in.check_in_device import CheckInDevice
from holdfast.events.console.check_in.check_in_pages import CheckInPage, SeatHandoverPage
from holdfast.events.console.events.edit_event_page import EditEventPage
from holdfast.events.console.events.event_page import ConsoleEventPage
from holdfast.events.console.events.home_page import EventsPage
from holdfast.events.console.events.new_event_page import NewEventPage
from holdfast.events.console.events.photos_page import PhotosPage
from holdfast.events.console.events.publication_pages import CancelEventPage, PublicationPage
from holdfast.events.console.events.share_pages import PosterPage, SharePages
from holdfast.events.console.events.uploads import Uploads
from holdfast.events.console.frame import HOME, Console, organizer
from holdfast.events.console.live_changes import LiveChanges, LiveConsole
from holdfast.events.console.mails import mail_paragraphs_page, mails_page
from holdfast.events.console.mails.mail_paragraphs_page import MailParagraphsPage
from holdfast.events.console.mails.mails_page import MailsPage
from holdfast.events.console.payments import event_payments_pages, payments_page, payouts_page
from holdfast.events.console.payments.event_payments_pages import EventPaymentsPage, PaymentsFile
from holdfast.events.console.payments.payments_page import PaymentsPage
from holdfast.events.console.payments.payouts_page import PayoutsPage
from holdfast.events.console.people import add_registration_page, bulk_changes_page, registrations_pages
from holdfast.events.console.people.add_registration_page import AddRegistrationPage
from holdfast.events.console.people.bulk_changes_page import BulkChangesPage
from holdfast.events.console.people.registration_page import RegistrationPage
from holdfast.events.console.people.registrations_pages import RegistrationsFile, RegistrationsPage
from holdfast.events.console.queues import queues_pages
from holdfast.events.console.queues.queues_pages import QueuesPages
from holdfast.events.context import Context
from holdfast.events.events import edits, overview, own_events
from holdfast.events.keys.operations import KEY_LIMITS
from holdfast.events.mails import event_copies
from holdfast.events.oauth.model import SCOPES
from holdfast.events.payments import publication_terms
from holdfast.events.photos import operations as photos
from holdfast.events.problems import QUOTA_EXCEEDED
from holdfast.events.registrations import details_mail, latest, timeline
from holdfast.events.site import SITE
from holdfast.events.webhooks.messages import MESSAGES
from holdfast.events.webhooks.operations import CONSOLE_OPERATIONS as WEBHOOK_OPERATIONS
from holdfast.kit.contract.messages import translatable
from holdfast.kit.process.part import Endpoints, Part

OPERATIONS = (
    *start_pages.OPERATIONS,
    *account_pages.OPERATIONS,
    *branding_page.OPERATIONS,
    *own_events.OPERATIONS,
    *overview.OPERATIONS,
    *edits.OPERATIONS,
    *latest.OPERATIONS,
    *publication_terms.OPERATIONS,
    *photos.OPERATIONS,
    *event_copies.OPERATIONS,
    *mail_paragraphs_page.OPERATIONS,
    *agents_pages.OPERATIONS,
    *queues_pages.OPERATIONS,
    *mails_page.OPERATIONS,
    *registrations_pages.OPERATIONS,
    *add_registration_page.OPERATIONS,
    *bulk_changes_page.OPERATIONS,
    *timeline.OPERATIONS,
    *details_mail.OPERATIONS,
    *event_payments_pages.OPERATIONS,
    *payments_page.OPERATIONS,
    *payouts_page.OPERATIONS,
    *check_in.OPERATIONS,
    *seat_handover.OPERATIONS,
    *WEBHOOK_OPERATIONS,
)
"""The operations that only the console runs. Each is declared beside its function, or in the module of its page."""


def endpoints(context: Context) -> Endpoints:
    """The routes of the console, and the changes that its open pages show."""
    signed_in, runner = context.signed_in, context.console_runner
    settings, secret = context.database.resources.settings, context.database.resources.secret
    changes = LiveChanges(context.database)
    operations = (*api.OPERATIONS, *WEBHOOK_OPERATIONS)
    console = Console(signed_in, {operation.name: runner.run_of(operation) for operation in operations})
    uploads = Uploads(console, runner)
    event_page = ConsoleEventPage(console, runner, settings, secret)
    agents_page = agents_pages.agents_page(console, runner, settings, context.approvals)
    routes = [
        *SITE.assets("live.js", ZONE_SCRIPT),
        *LiveConsole(console, changes, context.streams).routes(),
        *StartPages(console, runner).routes(),
        *AccountPages(console, runner, secret).routes(),
        *EventsPage(console, runner, settings).routes(),
        *NewEventPage(console, runner, uploads).routes(),
        *event_page.routes(),
        *PublicationPage(console, runner, event_page).routes(),
        *SharePages(console, runner, settings).routes(),
        *PosterPage(console, runner, settings).routes(),
        *EditEventPage(console, runner).routes(),
        *CancelEventPage(console, runner).routes(),
        *PhotosPage(console, runner, uploads).routes(),
        *MailParagraphsPage(console, runner).routes(),
        connection_page_route(
            SITE,
            signed_in.limits,
            base_url=settings.base_url,
            connection=agents_pages.connection_of(settings),
            abilities=[*SCOPES.values()],
            examples=agents_pages.EXAMPLES,
            manual="/agents.md",
            reference="/docs",
        ),
        *agents_page.routes(),
        *RequestsPage(console, agents_page, context.approvals, organizer, describe).routes(),
        *KeysPages(console, runner, agents_page).routes(),
        *AppsPages(console, runner, agents_page).routes(),
        *AgentLimitPage(
            console,
            context.account_runner,
            KEY_LIMITS,
            organizer,
            counts="people",
            layout="console.html",
            lists={"key": AGENTS, "app": AGENTS},
        ).routes(),
        *WebhookPages(
            console,
            organizer,
            MESSAGES,
            layout="console.html",
            quota=QUOTA_EXCEEDED,
            purpose=translatable("Get a signed message at your own address when people register, pay or cancel."),
            reference="/docs/webhooks",
            test_port=settings.webhook_test_port,
            limit="keys",
        ).routes(),
        *BrandingPage(console, runner, uploads).routes(),
        *QueuesPages(console, runner, settings.queue_interval, settings.base_url).routes(),
        *MailsPage(console, runner).routes(),
        *RegistrationsPage(console, runner).routes(),
        *RegistrationsFile(console, runner).routes(),
        *BulkChangesPage(console, runner).routes(),
        *AddRegistrationPage(console, runner).routes(),
        *RegistrationPage(console, runner).routes(),
        *EventPaymentsPage(console, runner).routes(),
        *PaymentsFile(console, runner).routes(),
        *PaymentsPage(console, runner).routes(),
        *PayoutsPage(console, runner).routes(),
        *CheckInPage(console, runner).routes(),
        *CheckInDevice(console, runner).routes(),
        *SeatHandoverPage(console, runner).routes(),
        signed_in.missing_route(HOME, "console_missing"),
        signed_in.missing_route(ACCOUNT, "account_missing"),
    ]
    return Endpoints(routes, caches=[changes.listening])


PART = Part(operations=OPERATIONS, endpoints=endpoints)
