"""The currencies that a form offers, by their names, and the one that the region of a browser suggests."""

from collections.abc import Mapping
from functools import cache

from babel import Locale, UnknownLocaleError
from babel.core import get_global
from babel.numbers import get_currency_name, get_territory_currencies

from holdfast.events.processor.currencies import CURRENCIES
from holdfast.kit.pages.language import accepted_tags

FALLBACK = "USD"


@cache
def currency_names(locale: str) -> Mapping[str, str]:
    """The currencies that can be paid by card, such as `EUR` with `EUR · Euro`, in the order of their codes."""
    return {code: f"{code} · {get_currency_name(code, locale=locale)}" for code in sorted(CURRENCIES)}


def currency_of(header: bytes) -> str:
    """The currency of the preferred region in an Accept-Language header, such as `de-AT`.

    A language alone has a likely region.
    """
    for accepted in accepted_tags(header):
        tag = accepted.replace("-", "_")
        try:
            locale = Locale.parse(get_global("likely_subtags").get(tag, tag))
        except (ValueError, UnknownLocaleError):
            continue
        # The newest currency of a region stands last.
        in_use = get_territory_currencies(locale.territory) if locale.territory else []
        if currency := next((code for code in reversed(in_use) if code in CURRENCIES), None):
            return currency
    return FALLBACK
