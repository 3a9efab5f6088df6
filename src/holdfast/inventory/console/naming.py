"""What pages call variants: by the title, else the SKU, else the number in the id."""

import re
from collections.abc import Collection, Iterable, Mapping

from holdfast.accounts.sessions import Session
from holdfast.inventory.catalog.names import MOST, NameVariants, VariantName
from holdfast.inventory.console.frame import Console, merchant
from holdfast.inventory.site import SITE
from holdfast.kit.handler import Request
from holdfast.kit.pages.language import language_of

_GID = re.compile(r"gid://[A-Za-z0-9_-]+/ProductVariant/[0-9]+")


async def names_of(console: Console, session: Session, request: Request, gids: Collection[str]) -> Mapping[str, str]:
    """What to call each of some variants, by their ids, in the language of the page."""
    asked = sorted(set(gids))
    found: dict[str, VariantName] = {}
    for start in range(0, len(asked), MOST):
        command = NameVariants(gids=asked[start : start + MOST])
        found |= await console.run["name_variants"](merchant(session), command)
    words = SITE.texts(language_of(request)).gettext("Variant %(number)s")
    return {gid: name.title or name.sku or words % {"number": number(gid)} for gid, name in found.items()}


def number(gid: str) -> str:
    """The number in the id of a variant: it is what the platform shows in its own addresses."""
    return gid.rpartition("/")[2]


def gids_in(texts: Iterable[str]) -> set[str]:
    """The ids of variants that texts mention."""
    return {gid for text in texts for gid in _GID.findall(text)}


def with_names(text: str, names: Mapping[str, str]) -> str:
    """A text with the names of variants instead of their ids."""
    return _GID.sub(lambda found: names[found[0]], text)
