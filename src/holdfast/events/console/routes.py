"""The routes of the console, for organizers who are signed in."""

from collections.abc import Mapping

from starlette.routing import BaseRoute

from holdfast.accounts.door import Door
from holdfast.events.check_in import no_shows
from holdfast.events.check_in import operations as check_in
from holdfast.events.console import (
    account,
    copy_event,
    event_operations,
    event_payments,
    keys,
    mail_paragraphs,
    mails,
    payments,
    payouts,
    photo_operations,
    queues,
    registrations,
    start,
)
from holdfast.events.console.account import AccountPages
from holdfast.events.console.add_registration import AddRegistrationPage
from holdfast.events.console.apps import AppsPages
from holdfast.events.console.cancel_event import CancelEventPage
from holdfast.events.console.check_in import CheckInPage
from holdfast.events.console.check_in_device import CheckInDevice
from holdfast.events.console.edit_event import EditEventPage
from holdfast.events.console.event import EventPage
from holdfast.events.console.event_payments import EventPaymentsPage
from holdfast.events.console.events import EventsPage
from holdfast.events.console.frame import PLACES, Console
from holdfast.events.console.keys import KeysPages
from holdfast.events.console.mail_paragraphs import MailParagraphsPage
from holdfast.events.console.mails import MailsPage
from holdfast.events.console.new_event import NewEventPage
from holdfast.events.console.no_shows import NoShowsPage
from holdfast.events.console.payments import PaymentsPage
from holdfast.events.console.payouts import PayoutsPage
from holdfast.events.console.photos import PhotosPage
from holdfast.events.console.queues import QueuesPages
from holdfast.events.console.registration import RegistrationPage
from holdfast.events.console.registrations import RegistrationsPage
from holdfast.events.console.registrations_csv import RegistrationsFile
from holdfast.events.console.start import StartPages
from holdfast.events.console.uploads import Uploads
from holdfast.events.settings import Settings
from holdfast.events.site import SITE
from holdfast.kit.runner import Run, Runner
from holdfast.kit.secrets import Secret

OPERATIONS = (
    *start.OPERATIONS,
    *account.OPERATIONS,
    *event_operations.OPERATIONS,
    *photo_operations.OPERATIONS,
    *copy_event.OPERATIONS,
    *mail_paragraphs.OPERATIONS,
    *keys.OPERATIONS,
    *queues.OPERATIONS,
    *mails.OPERATIONS,
    *registrations.OPERATIONS,
    *event_payments.OPERATIONS,
    *payments.OPERATIONS,
    *payouts.OPERATIONS,
    *check_in.OPERATIONS,
    *no_shows.OPERATIONS,
)
"""The operations of the console that the API does not have."""


def routes(door: Door, runner: Runner, run: Mapping[str, Run], settings: Settings, secret: Secret) -> list[BaseRoute]:
    """The routes of the console. `run`: the operations of the API, by name."""
    console = Console(door, run, lambda _: PLACES)
    uploads = Uploads(console, runner)
    return [
        *SITE.assets("live.js"),
        *StartPages(console, runner).routes(),
        *AccountPages(console, runner, secret).routes(),
        *EventsPage(console).routes(),
        *NewEventPage(console, runner, uploads).routes(),
        *EventPage(console, runner, takes_payments=settings.takes_payments).routes(),
        *EditEventPage(console, runner).routes(),
        *CancelEventPage(console, runner).routes(),
        *PhotosPage(console, runner, uploads).routes(),
        *MailParagraphsPage(console, runner).routes(),
        *KeysPages(console, runner).routes(),
        *AppsPages(console, runner).routes(),
        *QueuesPages(console, runner, settings.queue_interval).routes(),
        *MailsPage(console, runner).routes(),
        *RegistrationsPage(console, runner).routes(),
        *RegistrationsFile(console, runner).routes(),
        *AddRegistrationPage(console, runner).routes(),
        *RegistrationPage(console, runner).routes(),
        *EventPaymentsPage(console, runner).routes(),
        *PaymentsPage(console, runner).routes(),
        *PayoutsPage(console, runner).routes(),
        *CheckInPage(console, runner).routes(),
        *CheckInDevice(console, runner).routes(),
        *NoShowsPage(console, runner).routes(),
    ]
