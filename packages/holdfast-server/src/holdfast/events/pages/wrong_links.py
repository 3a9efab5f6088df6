"""The refusals of pages behind the signed links of e-mails."""

import re

from holdfast.events.site import SITE
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.pages.language import language_of

_EVENT = re.compile(r"([1-9][0-9]{0,17})-")
"""The event in the address of a link, even if the rest of it is missing."""


def refuse(problem: Problem, request: Request, *, framed: bool = False) -> Reply:
    """The page for a problem. If the link is not one of ours, it leads to the event, where people get the right one."""
    refusal = SITE.refuse(problem, request, framed=framed)
    if refusal.status != 404:
        return refusal
    language, event = language_of(request), _EVENT.match(request.fields.get("link", ""))
    return SITE.page(
        "pages/wrong_link.html",
        404,
        language=language,
        framed=framed,
        event_path=language.at(f"/events/{event[1]}{'/embed' if framed else ''}") if event else "",
    )
