"""The look of an organizer: its accent, and its words about itself. Its logo is in `photos/logo.py`."""

from typing import Annotated

from msgspec import Meta, Struct

from holdfast.events.organizers.accent import is_color, nearest_passing, passes
from holdfast.events.resources import Reader, Tx
from holdfast.events.users.model import ORGANIZER_CHANNEL
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, rule
from holdfast.kit.contract.messages import message

MAX_ABOUT_CHARACTERS = 1_000


class GetLook(Command):
    """Asks for the look of the organizer that asks."""


class ChangeLook(Command):
    """Asks to change the accent and the words of the organizer that asks. Null: our accent; no words."""

    accent: str | None = None
    about: Annotated[str, Meta(min_length=1, max_length=MAX_ABOUT_CHARACTERS)] | None = None

    @rule("accent")
    def _accent_can_be_read(self) -> str | None:
        if self.accent is None:
            return None
        if not is_color(self.accent):
            return message("Enter a colour, such as #0d6563.")
        if not passes(self.accent):
            return message(
                "%(color)s is too light for white text. The nearest that passes is %(nearest)s.",
                color=self.accent,
                nearest=nearest_passing(self.accent),
            )
        return None


class Look(Struct):
    """The look of an organizer.

    accent      its accent as #rrggbb; None: ours
    logo_key    the key of the photo that is its logo
    about       its words about itself, as plain text
    """

    name: str
    slug: str
    accent: str | None
    logo_key: str | None
    about: str | None


async def get(reader: Reader, caller: Caller, command: GetLook) -> Look:
    """Read the look of an organizer."""
    look = await reader.row(
        Look, "select name, slug, accent, logo_key, about from users where id = %(id)s", {"id": caller.tenant}
    )
    assert look
    return look


async def change(tx: Tx, caller: Caller, command: ChangeLook) -> None:
    """Change the accent and the words of an organizer."""
    slug = await tx.value(
        "update users set accent = %(accent)s, about = %(about)s where id = %(id)s returning slug",
        {"id": caller.tenant, "accent": command.accent, "about": command.about},
    )
    await tx.notify(ORGANIZER_CHANNEL, slug)
