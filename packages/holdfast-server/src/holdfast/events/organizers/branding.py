"""The look of an organizer: its accent, its words about itself, and its logo.

A logo is one of the organizer's photos, shown small. The photo that it replaces is deleted after a day, like other
photos.
"""

from typing import Annotated, LiteralString
from urllib.parse import urlsplit

from msgspec import Meta, Struct

from holdfast.events.organizers.accent import is_color, nearest_passing, passes
from holdfast.events.photos import acceptance
from holdfast.events.photos.model import Key, urls
from holdfast.events.resources import Reader, Tx
from holdfast.events.settings import Settings
from holdfast.events.users.model import ORGANIZER_CHANNEL
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command, rule
from holdfast.kit.contract.messages import message
from holdfast.kit.contract.problems import VALIDATION_FAILED, invalid, refuses

MAX_ABOUT_CHARACTERS = 1_000


class GetBranding(Command):
    """Asks for the look of the organizer that asks."""


class ChangeBranding(Command):
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


class Branding(Struct):
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


async def get(reader: Reader, caller: Caller, command: GetBranding) -> Branding:
    """Read the look of an organizer."""
    branding = await reader.row(
        Branding, "select name, slug, accent, logo_key, about from users where id = %(id)s", {"id": caller.tenant}
    )
    assert branding
    return branding


async def change(tx: Tx, caller: Caller, command: ChangeBranding) -> None:
    """Change the accent and the words of an organizer."""
    slug = await tx.value(
        "update users set accent = %(accent)s, about = %(about)s where id = %(id)s returning slug",
        {"id": caller.tenant, "accent": command.accent, "about": command.about},
    )
    await tx.notify(ORGANIZER_CHANNEL, slug)


LOGO: LiteralString = """
    case when organizers.proved_at is not null and organizers.logo_key is not null
         then (select key || case when cardinality(widths) > 0 then '.w480.webp' else '' end
                 from photos where key = organizers.logo_key limit 1) end
"""
"""SQL: the file to show as the logo of the organizer in a row of `users`, here `organizers`: the smallest size of the
photo, or the photo while it has none. Null if it has no logo, or has not confirmed its address.
"""


def logo_url(file: str | None, settings: Settings) -> str:
    """The public address of a logo; empty if there is none."""
    return urls([file], settings)[0] if file else ""


class ChangeLogo(Command):
    """Asks to make a photo of the organizer its logo. Null: it has none."""

    key: Key | None = None


@refuses(VALIDATION_FAILED)
async def change_logo(tx: Tx, caller: Caller, command: ChangeLogo) -> None:
    """Make a photo the logo of its organizer."""
    keys = [command.key] if command.key else []
    if unknown := await acceptance.unknown_key_errors(tx, caller, caller.tenant, keys):
        raise invalid({"key": unknown})
    slug = await tx.value(
        "update users set logo_key = %(key)s where id = %(id)s and logo_key is distinct from %(key)s returning slug",
        {"id": caller.tenant, "key": command.key},
    )
    if slug:
        await tx.notify(ORGANIZER_CHANNEL, slug)


def photo_origin(settings: Settings) -> str:
    """The origin of photos; empty if it is that of the pages."""
    media, base = urlsplit(settings.media_url), urlsplit(settings.base_url)
    same = (media.scheme, media.netloc) == (base.scheme, base.netloc)
    return "" if same else f"{media.scheme}://{media.netloc}"
