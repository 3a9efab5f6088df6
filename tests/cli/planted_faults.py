"""Faults that `holdfast check` finds: how each is planted, and what is said about it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.kit.process.checks.inspection import CheckLimits

SECRET = "the secret of the services in these tests"
NOWHERE = "http://127.0.0.1:1"

SHOP = """
    insert into shops (domain) values ('ada.myshopify.com');
    insert into shared_inventories (shop_id) select id from shops;
    insert into installs (shop_id, scopes) select id, '{}' from shops;
"""
EVENT = """
    insert into users (public_id, email, name, role, slug)
    values ('aaaaaaaa', 'ada@example.com', 'Ada', 'organizer', 'ada');
    insert into events (organizer_id, title, body, datetime, capacity, waitinglist_capacity, currency, pricing_mode,
                        price, recurrence_frequency, recurrence_interval, recurs_from)
    select id, 'Jazz', '', now() + interval '1 day', 9, 9, 'EUR', 'free', 0, 'none', 0, now() from users;
    insert into registrations (event_id, user_id, arrival, amount_paid, received_at, organizer_id)
    select events.id, users.id, 1, 0, now() - interval '1 hour', users.id from events, users;
"""


@dataclass(frozen=True)
class Fault:
    """Something that is wrong with a service.

    place      the service, and the point where it is found
    message    a part of what is said about it
    remedy     a part of what is said that helps
    sql        a statement that plants it in the database; errors of it are a part of some faults
    settings   the settings with which the service has it; `SERVER` in them is the address of the local server
    files      files of the data directory, with their content and mode
    mail       options of a mail server, which the service uses then
    running    the processes of the service that are connected
    clock      by how many seconds the clock of this machine is ahead
    is_bundled whether the settings name no database, as with the bundled PostgreSQL
    undo       a statement for what the next test would not find as new
    session    the name of a session that is connected, and does nothing
    """

    place: str
    message: str
    remedy: str
    sql: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    files: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    mail: Mapping[str, str] | None = None
    running: int = 0
    clock: float = 0
    limits: CheckLimits = field(default_factory=CheckLimits)
    is_bundled: bool = False
    undo: str = ""
    session: str = ""
    status: str = "wrong"

    @property
    def service(self) -> str:
        return self.place.partition(" ")[0]

    @property
    def point(self) -> str:
        return self.place.partition(" ")[2]
