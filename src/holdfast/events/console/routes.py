"""The routes of the console, for organizers who are signed in."""

from collections.abc import Mapping

from starlette.routing import BaseRoute

from holdfast.accounts.door import Door
from holdfast.events.console import event_operations, keys, mails, queues, registrations, start
from holdfast.events.console.add_registration import AddRegistrationPage
from holdfast.events.console.apps import AppsPages
from holdfast.events.console.cancel_event import CancelEventPage
from holdfast.events.console.edit_event import EditEventPage
from holdfast.events.console.event import EventPage
from holdfast.events.console.events import EventsPage
from holdfast.events.console.frame import Console
from holdfast.events.console.keys import KeysPages
from holdfast.events.console.mails import MailsPage
from holdfast.events.console.new_event import NewEventPage
from holdfast.events.console.photos import PhotosPage
from holdfast.events.console.queues import QueuesPages
from holdfast.events.console.registration import RegistrationPage
from holdfast.events.console.registrations import RegistrationsPage
from holdfast.events.console.registrations_csv import RegistrationsFile
from holdfast.events.console.start import StartPages
from holdfast.kit.runner import Run, Runner

OPERATIONS = (
    *start.OPERATIONS,
    *event_operations.OPERATIONS,
    *keys.OPERATIONS,
    *queues.OPERATIONS,
    *mails.OPERATIONS,
    *registrations.OPERATIONS,
)
"""The operations of the console that the API does not have."""


def routes(door: Door, runner: Runner, run: Mapping[str, Run]) -> list[BaseRoute]:
    """The routes of the console. `run`: the operations of the API, by name."""
    console = Console(door, run)
    return [
        *StartPages(console, runner).routes(),
        *EventsPage(console).routes(),
        *NewEventPage(console, runner).routes(),
        *EventPage(console, runner).routes(),
        *EditEventPage(console, runner).routes(),
        *CancelEventPage(console, runner).routes(),
        *PhotosPage(console, runner).routes(),
        *KeysPages(console, runner).routes(),
        *AppsPages(console, runner).routes(),
        *QueuesPages(console, runner).routes(),
        *MailsPage(console, runner).routes(),
        *RegistrationsPage(console, runner).routes(),
        *RegistrationsFile(console, runner).routes(),
        *AddRegistrationPage(console, runner).routes(),
        *RegistrationPage(console, runner).routes(),
    ]
