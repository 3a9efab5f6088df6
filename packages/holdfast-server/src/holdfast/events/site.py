"""The site of the events service: the layout of the kit with the templates of this folder."""

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


def refuse_link(problem: Problem, request: Request, *, framed: bool = False) -> Reply:
    """The page for a problem of a link of an e-mail. If the link is not ours, it says how people get the right one."""
    refusal = SITE.refuse(problem, request, framed=framed)
    if refusal.status != 404:
        return refusal
    return SITE.page("pages/wrong_link.html", 404, language=language_of(request), framed=framed)
