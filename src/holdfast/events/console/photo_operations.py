"""What the forms with photos ask, besides the operations of the API: to keep a file, and how photos are shown."""

from typing import LiteralString

from msgspec import Struct

from holdfast.events.images import acceptance
from holdfast.events.images.container import Unfit
from holdfast.events.images.model import Picture, sizes
from holdfast.events.images.sizes import accept, find_sizes
from holdfast.events.pages.event import origin
from holdfast.events.problems import QUOTA_EXCEEDED, TOO_MANY_UPLOADS
from holdfast.events.resources import Concluded, Reader, Steps, Tx
from holdfast.kit.caller import Caller
from holdfast.kit.command import Command
from holdfast.kit.modes import read, steps
from holdfast.kit.operation import Operation
from holdfast.kit.problems import VALIDATION_FAILED, invalid, refuses
from holdfast.kit.said import told


class KeepPhoto(Command):
    """Asks to keep a file as a photo of the organizer."""

    content: bytes


class Kept(Struct):
    """A photo that no event shows yet."""

    key: str


class LookAtPhotos(Command):
    keys: list[str]


class Looked(Struct):
    """Photos with their keys. `images_from`: their origin if it is not that of the pages."""

    photos: list[tuple[str, Picture]]
    images_from: str


@refuses(VALIDATION_FAILED, QUOTA_EXCEEDED, TOO_MANY_UPLOADS)
async def keep(steps: Steps, caller: Caller, command: KeepPhoto) -> Concluded[Kept]:
    """Keep a file as a photo that an event can show. If none does for a day, it is deleted."""
    try:
        key = await acceptance.store(steps, caller.tenant, command.content)
    except Unfit as reason:
        raise invalid({"content": [told(reason)]}) from reason

    async def accepted(tx: Tx) -> Kept:
        await accept(tx, [key])
        return Kept(key)

    return await steps.conclude(accepted)


async def look_at(reader: Reader, caller: Caller, command: LookAtPhotos) -> Looked:
    """Read how photos are shown, in the order of their keys. Those that the organizer does not have are left out."""
    own = {key for (key,) in await reader.tuples(_OWN, {"keys": command.keys, "organizer_id": caller.tenant})}
    known = await find_sizes(reader, [*own]) if own else {}
    settings = reader.resources.settings
    photos = [(key, sizes(key, known.get(key), settings)) for key in command.keys if key in own]
    return Looked(photos, origin(settings))


_OWN: LiteralString = """
    select asked.key
      from unnest(%(keys)s::text[]) as asked (key)
     cross join lateral (select from photos where photos.key = asked.key and organizer_id = %(organizer_id)s
                                              and state = 'accepted' limit 1) as own
"""

KEEP = Operation("keep_photo", None, steps(keep))
LOOK_AT = Operation("look_at_photos", None, read(look_at))
OPERATIONS = (KEEP, LOOK_AT)
"""They have no routes and no tools of their own."""
