"""The site of the inventory service: the kit's layout with the templates of this folder."""

from pathlib import Path

from holdfast import accounts
from holdfast.inventory.unit_words import counted_unit
from holdfast.kit.pages.site import Site

PARAMETERS = frozenset(
    {
        "cart_check",
        "cursor",
        "days_of_cover",
        "count",
        "delivery",
        "done",
        "gid",
        "before",
        "kind",
        "new_pool",
        "offset",
        "q",
        "shop",
        "status",
        "threshold",
        "unlinked",
        "way",
    }
    | accounts.PARAMETERS
)
"""The query parameters that pages read."""

SITE = Site(
    "Holdfast Inventory",
    Path(__file__).parent,
    accounts.FOLDER,
    parameters=PARAMETERS,
    filters={"counted_unit": counted_unit},
)
