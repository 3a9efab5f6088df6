"""The logo of an organizer: one of its photos, shown small."""

from typing import LiteralString

from holdfast.events.images.model import urls
from holdfast.events.settings import Settings

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
