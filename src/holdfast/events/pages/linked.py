"""Pages behind a signed link to one registration."""

from holdfast.events.registrations import own
from holdfast.events.registrations.links import Kind, Link, read
from holdfast.events.site import SITE
from holdfast.kit.caller import Caller
from holdfast.kit.handler import Reply, Request
from holdfast.kit.limits import Limits
from holdfast.kit.modes import read_batched
from holdfast.kit.operation import Operation
from holdfast.kit.pages.language import Language
from holdfast.kit.problems import NOT_FOUND
from holdfast.kit.secrets import Secret

LOOK = Operation("look_at_own", None, read_batched(own.look))
"""Reads the registration that a link names. It has no route and no tool of its own."""


async def opened(kind: Kind, request: Request, secret: Secret, limits: Limits, caller: Caller) -> Link:
    """The link in the address of a request. Raises `not_found` if it was never made, and `rate_limited`."""
    link = read(secret, kind, request.scope["path_params"]["link"])
    if link is None:
        await limits.hit("wrong links", caller.name)
        raise NOT_FOUND()
    return link


def gone(language: Language, status: int = 410, *, framed: bool = False) -> Reply:
    """The page behind a link to a registration that was removed, or replaced by a newer one."""
    return SITE.page("pages/gone.html", status, language=language, framed=framed)
