"""Suggests pools for the variants of a shop: packs of different sizes of the same product draw on one stock.

Pack sizes are read from titles: "6-pack", "Pack of 12", "12 Stück", "2x", "x3", "Single", "Dozen".
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from holdfast.inventory.catalog.model import ONLY_VARIANT
from holdfast.inventory.cursor import CursorPage, cursor_after
from holdfast.inventory.resources import Reader
from holdfast.inventory.stock.ledger_rules import simulated_stock
from holdfast.kit.contract.caller import Caller

MAX_SIZE = 1_000
"""The largest pack that a title is believed to name. A larger number is something else, such as a year."""

_NUMBER = r"(?P<size>[0-9]{1,4})"
_PACK = r"(?:pack(?:s|age|ung)?|set|box(?:es)?|case|carton|karton|kiste|bundle|tray|palette)"
_PIECES = r"(?:pcs?\b\.?|pieces?|st(?:ü|ue)ck|stk\b\.?|ct\b\.?|count|units?|einheiten)"

_SIZES = (
    re.compile(rf"\b{_PACK}\s*(?:of|with|mit|von|à|a)?\s*{_NUMBER}\b(?!\s*[,.x][0-9])"),
    re.compile(rf"(?<![0-9.,])\b{_NUMBER}\s*-?\s*(?:er)?\s*-?\s*(?:{_PACK}|{_PIECES})(?!\w)"),
    re.compile(rf"(?<![0-9.,])\b{_NUMBER}er\b"),
    # 6 x 250 ml is a pack of six, 10 x 15 cm is not.
    re.compile(rf"(?<![0-9.,x])\b{_NUMBER}\s?x(?=\s*(?:[0-9.,]+\s?(?:k?g|m?l|cl|oz|lb)\b|[^\W0-9]{{3}}|$|[^\w\s]))"),
    re.compile(rf"(?<!\w)(?<![0-9]\s)x\s?{_NUMBER}\b"),
)
"""The ways to write a size with digits."""

_WORDS = (
    (re.compile(r"\bhalf[ -]dozen\b|\bhalbes dutzend\b"), 6),
    (re.compile(r"\b(?:dozen|dutzend)\b"), 12),
    (re.compile(r"\b(?:twin|duo|double|doppel|zweier)[ -]?pack\b"), 2),
    (re.compile(r"\b(?:trio|triple|dreier)[ -]?pack\b"), 3),
    (re.compile(r"\b(?:single|singles|einzeln|einzelst(?:ü|ue)ck|einzelpackung|individual)\b"), 1),
)
"""The sizes that have words."""

_EDGES = " \t-\N{EN DASH}\N{EM DASH}/|\N{MIDDLE DOT},;:()[]"

MAX_VARIANTS = 2_500
"""The most variants that are read for one page of suggestions. A product of the platform has at most 2,048."""

MAX_SUGGESTIONS = 20
MAX_MEMBERS = 40
"""The most variants of a suggestion: each is a field of its form, and a form has at most 50."""


class PackTitle(NamedTuple):
    """A title without the pack size in it, and that size; None if it names none."""

    rest: str
    size: int | None


def read_pack_size(title: str) -> PackTitle:
    """The pack size in a title, such as 6 for "Honey jars, 6-pack", and the title without it ("Honey jars")."""
    text = title.lower().replace("\N{MULTIPLICATION SIGN}", "x")
    if len(text) != len(title):  # a letter whose small form is longer: places in both would differ
        return PackTitle(title, None)
    for pattern in _SIZES:
        if (match := pattern.search(text)) and 1 <= (size := int(match["size"])) <= MAX_SIZE:
            return PackTitle(_without(title, match), size)
    for pattern, size in _WORDS:
        if match := pattern.search(text):
            return PackTitle(_without(title, match), size)
    return PackTitle(title.strip(_EDGES), None)


def _without(title: str, match: re.Match[str]) -> str:
    """A title without a part of it, and without the signs that joined the part to the rest."""
    parts = (title[: match.start()].rstrip(_EDGES), title[match.end() :].lstrip(_EDGES))
    return " ".join(part for part in parts if part).strip(_EDGES)


class ProductVariant(Struct, frozen=True):
    """A variant of the shop at the platform.

    available    how many there are at all settable locations
    linked       whether it draws on any pool
    picture      the address of a picture of its product; None: there is none
    """

    gid: str
    product_gid: str
    product_title: str
    title: str
    sku: str | None
    tracked: bool
    available: int
    linked: bool
    picture: str | None = None


class SuggestedMember(Struct, frozen=True):
    """A variant of a suggested pool, and the units that one sale of it takes."""

    variant: ProductVariant
    units_per_sale: int


class FirstStock(Struct, frozen=True):
    """How many single units seem to be there, and the sum that says so.

    terms          how many packs there are, and of how many units each is: the smallest packs first
    counts_once    whether the packs are the same goods, shown several times: then only the first term counts, which is
                   the largest
    """

    quantity: int
    terms: Sequence[tuple[int, int]] = ()
    counts_once: bool = False


class PoolSuggestion(Struct, frozen=True):
    """A pool that could be made. `first_stock`: what seems to be there."""

    name: str
    first_stock: FirstStock
    members: Sequence[SuggestedMember]

    @property
    def quantity(self) -> int:
        return self.first_stock.quantity


class SuggestPools(CursorPage):
    """Read the products of the shop by title, and suggest pools for them."""


class PoolSuggestions(Struct):
    """Suggested pools, what was read for them, and the cursor of the products after those that were read.

    products    how many products were read, with `variants` variants
    linked      how many kinds of goods are sold in several sizes, and suggest nothing because they draw on a pool
    too_large   how many suggest nothing because they have too many variants
    """

    suggestions: list[PoolSuggestion]
    next_cursor: str | None
    products: int
    variants: int
    linked: int
    too_large: int


class PackGroup(NamedTuple):
    """Variants that are packs of the same goods, in two sizes or more, and the name of a pool for them."""

    name: str
    members: list[SuggestedMember]

    @property
    def is_linked(self) -> bool:
        return any(member.variant.linked for member in self.members)

    @property
    def is_too_large(self) -> bool:
        return len(self.members) > MAX_MEMBERS


def suggest(variants: Iterable[ProductVariant]) -> list[PoolSuggestion]:
    """The pools that some variants suggest, in the order of the variants.

    A product of which a variant is linked to a pool already suggests none.
    """
    return _suggestions(group_packs(variants))


def _suggestions(groups: Iterable[PackGroup]) -> list[PoolSuggestion]:
    return [
        PoolSuggestion(group.name, first_stock(group.members), _smallest_first(group.members))
        for group in groups
        if not group.is_linked and not group.is_too_large
    ]


def _smallest_first(members: Iterable[SuggestedMember]) -> list[SuggestedMember]:
    return sorted(members, key=lambda member: member.units_per_sale)


def group_packs(variants: Iterable[ProductVariant]) -> list[PackGroup]:
    """The variants that are packs of the same goods, in the order of the variants.

    They are of one product, or of products whose titles differ by the pack alone, in two sizes or more. What is left of
    their titles without the pack, such as a colour, is the same.
    """
    groups: dict[tuple[str, str], list[SuggestedMember]] = {}
    names: dict[tuple[str, str], str] = {}
    for variant in variants:
        product, product_size = read_pack_size(variant.product_title)
        option, option_size = _option(variant, product)
        key = (product.casefold(), option.casefold())
        names.setdefault(key, " · ".join(part for part in (product, option) if part)[:100].strip())
        groups.setdefault(key, []).append(SuggestedMember(variant, option_size or product_size or 1))
    return [
        PackGroup(names[key], members)
        for key, members in groups.items()
        if names[key] and len({member.units_per_sale for member in members}) > 1
    ]


def first_stock(members: Iterable[SuggestedMember]) -> FirstStock:
    """How many single units seem to be there: each pack counts as many units as are in it, and all are added up.

    But if there are exactly as many packs as could be made of one stock, the platform shows the same goods several
    times: they are counted once.
    """
    counted = [
        (max(member.variant.available, 0), member.units_per_sale)
        for member in _smallest_first(members)
        if member.variant.tracked
    ]
    max_stock = max((packs * size for packs, size in counted), default=0)
    terms = [(packs, size) for packs, size in counted if packs]
    counts_once = len(terms) > 1 and all(packs == max_stock // size for packs, size in counted)
    if counts_once:
        terms.sort(key=lambda term: term[0] * term[1] < max_stock)
    return FirstStock(max_stock if counts_once else sum(packs * size for packs, size in counted), terms, counts_once)


def quantities_after(quantity: int, units_by_variant: Mapping[str, int]) -> dict[str, int]:
    """How many of each variant can be sold of a new pool with this quantity, by the rules of the ledger."""
    stock = simulated_stock({0: (quantity, units_by_variant)})
    return {gid: available for gid in units_by_variant if (available := stock.available(gid)) is not None}


def _option(variant: ProductVariant, product: str) -> tuple[str, int | None]:
    """What a variant's title says besides its pack size and the product, and that size."""
    rest: list[str] = []
    size: int | None = None
    for option in "" if variant.title == ONLY_VARIANT else variant.title.split(" / "):
        title = read_pack_size(option)
        size = size or title.size
        # "Single jar" of "Honey jars" says no more than "Single"; so does "6-pack of jars".
        words = [word for word in title.rest.split() if title.size is None or not _is_word_of(word, product)]
        if words:
            rest.append(" ".join(words))
    return " / ".join(rest), size


def _is_word_of(word: str, product: str) -> bool:
    """Whether a product's title has a word, in the singular or the plural, or whether it only joins others."""
    stem = re.sub(r"(?:es|s|n|en)$", "", word.casefold())
    return word.casefold() in {"of", "von", "a", "the"} or any(
        re.sub(r"(?:es|s|n|en)$", "", other) == stem for other in product.casefold().split()
    )


async def suggest_pools(reader: Reader, caller: Caller, command: SuggestPools) -> PoolSuggestions:
    """Pools that the products of the shop suggest, the products in the order of their titles."""
    rows = await reader.rows(
        ProductVariant,
        """
        select gid, product_gid, product_title, title, sku, tracked,
               (select coalesce(sum(available), 0)::bigint from levels
                  join settable_locations as location
                    on location.shop_id = %(shop_id)s and location.gid = levels.location_gid
                 where levels.shop_id = %(shop_id)s and levels.item_gid = catalog.item_gid) as available,
               exists (select from members where members.shop_id = %(shop_id)s and variant_gid = gid) as linked,
               picture
          from catalog_variants as catalog
         where shop_id = %(shop_id)s and product_title > %(after)s
         order by product_title, title, gid limit %(limit)s
        """,
        {"shop_id": caller.tenant, "after": command.after(str) or "", "limit": MAX_VARIANTS},
    )
    cursor: str | None = None
    if len(rows) == MAX_VARIANTS:
        # The last product may go on; it is read with the next page, unless it is the only one.
        last = rows[-1].product_title
        rows = [row for row in rows if row.product_title != last] or rows
        cursor = cursor_after(rows[-1].product_title)
    groups = group_packs(rows)
    return PoolSuggestions(
        suggestions=_suggestions(groups)[:MAX_SUGGESTIONS],
        next_cursor=cursor,
        products=len({row.product_gid for row in rows}),
        variants=len(rows),
        linked=sum(group.is_linked for group in groups),
        too_large=sum(group.is_too_large and not group.is_linked for group in groups),
    )
