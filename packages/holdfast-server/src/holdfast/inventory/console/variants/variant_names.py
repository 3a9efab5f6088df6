"""The names of variants on pages: the platform's, in the place of ids."""

import re
from collections.abc import Collection, Iterable, Mapping

from holdfast.accounts.sessions import Session
from holdfast.inventory.catalog.model import MAX_VARIANTS, ONLY_VARIANT, NameVariants, VariantName
from holdfast.inventory.catalog.operations import Hit
from holdfast.inventory.catalog.pool_suggestions import ProductVariant
from holdfast.inventory.console.frame import Console, merchant
from holdfast.inventory.site import SITE
from holdfast.kit.http.handler import Request
from holdfast.kit.pages.language import language_of

_GID = re.compile(r"gid://[A-Za-z0-9_-]+/ProductVariant/[0-9]+")


async def names_of(console: Console, session: Session, request: Request, gids: Collection[str]) -> Mapping[str, str]:
    """The names of variants by their ids, in the language of the page."""
    sorted_gids = sorted(set(gids))
    names: dict[str, VariantName] = {}
    for start in range(0, len(sorted_gids), MAX_VARIANTS):
        command = NameVariants(gids=sorted_gids[start : start + MAX_VARIANTS])
        names |= await console.run["name_variants"](merchant(session), command)
    words = SITE.texts(language_of(request)).gettext("Variant %(number)s")
    return {gid: name.title or name.sku or words % {"number": variant_number(gid)} for gid, name in names.items()}


def variant_number(gid: str) -> str:
    """The number in the id of a variant, which the platform shows in its own addresses."""
    return gid.rpartition("/")[2]


def gids_in(texts: Iterable[str]) -> set[str]:
    """The ids of variants in texts."""
    return {gid for text in texts for gid in _GID.findall(text)}


def with_names(text: str, names: Mapping[str, str]) -> str:
    """A text with the names of variants instead of their ids."""
    return _GID.sub(lambda match: names[match[0]], text)


def title_of(variant: Hit | ProductVariant) -> str:
    """The title of a variant of the platform with that of its product."""
    return variant.product_title if variant.title == ONLY_VARIANT else f"{variant.product_title} · {variant.title}"
