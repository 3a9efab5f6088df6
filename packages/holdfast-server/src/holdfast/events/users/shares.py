"""The shares of organizers of what all of them share: decoders of photos, texts that are rendered, downloads.

Each organizer has turns of its own. Any visitor can register organizers, so those that have not confirmed their address
have one turn together, and among them each address.
"""

from holdfast.events.resources import Steps
from holdfast.kit.contract.caller import Caller, Owner
from holdfast.kit.contract.client import request_source
from holdfast.kit.contract.sources import path_of

ORGANIZERS = "organizers"
UNPROVED = "unconfirmed organizers"


async def share_of(steps: Steps, caller: Caller) -> Owner:
    """The owner of work that is done for a caller outside the database."""
    if caller.tenant_id is None:
        return (ORGANIZERS, caller.name)
    is_proved = await steps.read(
        lambda reader: reader.value("select proved_at is not null from users where id = %(id)s", {"id": caller.tenant})
    )
    return organizer_share(caller.tenant, is_proved=bool(is_proved))


def organizer_share(organizer_id: int, *, is_proved: bool) -> Owner:
    """The owner of work that is done for an organizer."""
    if is_proved:
        return (ORGANIZERS, organizer_id)
    return (ORGANIZERS, UNPROVED, *path_of(request_source()), organizer_id)


def is_unproved(owner: Owner) -> bool:
    """Whether an owner is one of the organizers that have not confirmed their address."""
    return UNPROVED in owner
