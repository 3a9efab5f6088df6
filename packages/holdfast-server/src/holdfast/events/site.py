"""The site of the events service: the layout of the kit with the templates of this folder."""

import re
from pathlib import Path

from holdfast import accounts
from holdfast.events.oauth_settings import AUTHORIZATION_PARAMETERS
from holdfast.events.texts.outbound_texts import page_title
from holdfast.kit.contract.problems import Problem
from holdfast.kit.http.handler import Reply, Request
from holdfast.kit.pages.language import language_of
from holdfast.kit.pages.site import Site

PARAMETERS = (
    frozenset(
        {
            "after",
            "app",
            "before",
            "copy",
            "count",
            "delivery",
            "device",
            "do",
            "event",
            "done",
            "status",
            "undone",
            "offset",
            "organizer",
            "paid",
            "q",
            "queue_token",
            "receipt",
            "site",
            "sort",
            "state",
        }
    )
    | accounts.PARAMETERS
    | AUTHORIZATION_PARAMETERS
)
"""The query parameters that the pages read."""

SITE = Site(
    "Holdfast Events",
    Path(__file__).parent,
    accounts.FOLDER,
    parameters=PARAMETERS,
    filters={"page_title": page_title},
)

_EVENT_OF_LINK = re.compile(r"([1-9][0-9]{0,17})-")
"""The event in the address of a link, even if the rest of the address is missing."""


def refuse_link(problem: Problem, request: Request, *, framed: bool = False) -> Reply:
    """The page for a problem of a link of an e-mail. If it is not ours, it leads to the event."""
    refusal = SITE.refuse(problem, request, framed=framed)
    if refusal.status != 404:
        return refusal
    language, event = language_of(request), _EVENT_OF_LINK.match(request.fields.get("link", ""))
    return SITE.page(
        "pages/wrong_link.html",
        404,
        language=language,
        framed=framed,
        event_path=language.at(f"/events/{event[1]}{'/embed' if framed else ''}") if event else "",
    )
