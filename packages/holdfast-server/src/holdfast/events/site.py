"""The site of the events service: the layout of the kit with the templates of this folder."""

from pathlib import Path

from holdfast import accounts
from holdfast.events.oauth_settings import AUTHORIZATION_PARAMETERS
from holdfast.events.texts.outbound_texts import page_title
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
