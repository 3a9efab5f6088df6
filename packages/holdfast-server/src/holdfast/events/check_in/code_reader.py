"""Reads the codes that scanners scan and people type: the address in a QR code, or a short code."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from holdfast.events.check_in.model import VerdictCode
from holdfast.events.check_in.sql import CheckInRegistration
from holdfast.events.registrations import links
from holdfast.events.registrations.code import ShortCode, parse_short_code, short_code
from holdfast.events.registrations.links import OWN_PAGE, Link
from holdfast.kit.security.secrets import Secret

Letter = Literal["r", "w", "p", "x"]

LETTERS: Mapping[str, Letter] = {"registered": "r", "waitlisted": "w", "pending": "p", "in_draw": "p", "rejected": "x"}


class CodeReading(Struct, frozen=True):
    """The registration that a text names.

    arrival      the arrival number of the registration; 0 if the text names none of this event
    otherwise    the verdict if no registration of the event matches
    """

    arrival: int
    otherwise: VerdictCode
    typed: ShortCode | None = None
    link: Link | None = None

    def proves(self, secret: Secret, event_id: int, registration: CheckInRegistration) -> bool:
        """Whether the text is the code of the registration, whose arrival number is the same."""
        if self.link:
            return self.link.user_id == registration.public_id
        return self.typed in short_codes(secret, event_id, registration.public_id, registration.arrival)


def read_code(secret: Secret, event_id: int, text: str) -> CodeReading:
    """The registration that a text names at the entrance of an event."""
    # The address may have a language in its query, or no host.
    signed = text.strip().rpartition(f"{links.PATH}/")[2].partition("?")[0].partition("#")[0]
    if link := links.read(secret, OWN_PAGE, signed):
        if link.event_id != event_id:
            return CodeReading(0, "other_event")
        return CodeReading(link.arrival, "removed", link=link)
    typed = parse_short_code(text)
    return CodeReading(typed.arrival if typed else 0, "unknown", typed=typed)


def short_codes(secret: Secret, event_id: int, public_id: str, arrival: int) -> list[ShortCode]:
    """The short codes of a registration: one, or two during a rotation of the secret of the service."""
    return [
        short_code(link_text) for link_text in links.valid_texts(secret, OWN_PAGE, Link(event_id, public_id, arrival))
    ]


def verdict_without_seat(registration: CheckInRegistration) -> VerdictCode:
    """The verdict for a registration without a seat."""
    if registration.reason == "no_show":
        return "no_show"
    if registration.status == "in_draw":
        return "pending"
    if registration.status in {"waitlisted", "pending"}:
        return registration.status  # pyright: ignore[reportReturnType]
    return "rejected"
