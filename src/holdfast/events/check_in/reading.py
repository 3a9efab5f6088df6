"""Understands what scanners read and people type: the address in a QR code, or a short code."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from holdfast.events.check_in.model import Say
from holdfast.events.check_in.sql import Registered
from holdfast.events.registrations import links
from holdfast.events.registrations.code import Spoken, read_spoken, spoken
from holdfast.events.registrations.links import OWN, Link
from holdfast.kit.secrets import Secret

Letter = Literal["r", "w", "p", "x"]

LETTERS: Mapping[str, Letter] = {"registered": "r", "waitlisted": "w", "pending": "p", "rejected": "x"}


class Understood(Struct, frozen=True):
    """What a text says.

    arrival      of the registration; 0 if the text names none of this event
    otherwise    what to say if no registration of the event fits
    """

    arrival: int
    otherwise: Say
    typed: Spoken | None = None
    link: Link | None = None

    def proves(self, secret: Secret, event_id: int, found: Registered) -> bool:
        """Whether the text is the code of a registration that has this arrival."""
        if self.link:
            return self.link.user_id == found.public_id
        return self.typed in codes(secret, event_id, found.public_id, found.arrival)


def understand(secret: Secret, event_id: int, text: str) -> Understood:
    """What a text says at the entrance of an event."""
    # A scanner may be given the address with a language, or without the name of the service.
    signed = text.strip().rpartition(f"{links.PATH}/")[2].partition("?")[0].partition("#")[0]
    if link := links.read(secret, OWN, signed):
        if link.event_id != event_id:
            return Understood(0, "other_event")
        return Understood(link.arrival, "removed", link=link)
    typed = read_spoken(text)
    return Understood(typed.arrival if typed else 0, "unknown", typed=typed)


def codes(secret: Secret, event_id: int, user_id: str, arrival: int) -> list[Spoken]:
    """The short codes of a registration: one, or two while the secret of the service is exchanged."""
    return [spoken(each) for each in links.every(secret, OWN, Link(event_id, user_id, arrival))]


def without_seat(found: Registered) -> Say:
    """What to say of somebody who has no seat."""
    if found.reason == "no_show":
        return "no_show"
    if found.status in {"waitlisted", "pending"}:
        return found.status  # pyright: ignore[reportReturnType]
    return "rejected"
