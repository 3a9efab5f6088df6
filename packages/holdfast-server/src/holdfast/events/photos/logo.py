"""The logo of an organizer: one of its photos. The photo that it replaces is deleted after a day, like other photos."""

from holdfast.events.images import acceptance
from holdfast.events.images.model import Key
from holdfast.events.resources import Tx
from holdfast.events.users.model import ORGANIZER_CHANNEL
from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.command import Command
from holdfast.kit.contract.problems import VALIDATION_FAILED, invalid, refuses


class ChangeLogo(Command):
    """Asks to make a photo of the organizer its logo. Null: it has none."""

    key: Key | None = None


@refuses(VALIDATION_FAILED)
async def change(tx: Tx, caller: Caller, command: ChangeLogo) -> None:
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
