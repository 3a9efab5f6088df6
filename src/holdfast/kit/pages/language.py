"""The languages of pages and mails: English and German.

The English texts are the keys of the catalogues, `<folder>/translations/de.po`, which are read when they are first
needed. Numbers, prices and dates are written as people of the language write them (Babel, data of Unicode CLDR).
"""

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal
from functools import cache, lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, quote, urlencode
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_date, format_time, get_timezone_name
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_currency, format_decimal, get_currency_symbol
from babel.support import Translations
from msgspec import Struct

if TYPE_CHECKING:
    from holdfast.kit.handler import Request

MOST_KEPT = 8_000
"""The longest query that links to other languages keep."""

AS_IT_IS = "!$'()*+,/:;=?@%"
"""What a part of a query may have besides letters and digits."""

_WEIGHT = re.compile(r"\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*")


class Language(Struct, frozen=True):
    """A language that pages and mails are written in.

    code     its ISO 639 code
    name     its name in itself
    chosen   whether the address asks for it, so that links go on asking
    kept     what links to other pages have in their query besides: names and values
    """

    code: str
    name: str
    locale: str
    chosen: bool = False
    kept: tuple[tuple[str, str], ...] = ()

    def at(self, path: str) -> str:
        """The address of another page of this site, in this language if the visitor has chosen it."""
        if not self.query:
            return path
        return f"{path}{'&' if '?' in path else '?'}{urlencode(self.query)}"

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """What every link has in its query. A form that is sent by GET needs hidden fields for it."""
        return (*self.kept, ("lang", self.code)) if self.chosen else self.kept

    def number(self, number: int) -> str:
        return _number(number, self.locale)

    def money(self, amount: int, currency: str, digits: int = 2) -> str:
        """An amount in minor units of a currency, as people write it; a whole amount without its zeros.

        digits    how many digits the minor unit has
        """
        value = Decimal(amount).scaleb(-digits)
        shown = 0 if value == value.to_integral() else digits
        pattern = Locale.parse(self.locale).currency_formats["standard"].pattern
        if get_currency_symbol(currency, self.locale)[-1].isalpha():
            pattern = pattern.replace("¤", "¤\u00a0", 1) if pattern.startswith("¤") else pattern
        written = pattern.replace("0.00", f"0.{'0' * shown}" if shown else "0")
        return format_currency(value, currency, written, locale=self.locale, currency_digits=False)

    def date(self, moment: dt.datetime, zone: str) -> str:
        """The day of a moment in a zone: Saturday, November 21, 2026."""
        return _date(_key(moment), zone, "full", self.locale)

    def time(self, moment: dt.datetime, zone: str, *, seconds: bool = False) -> str:
        """The time of a moment in a zone, with the zone: 7:30 PM EST, with seconds 7:30:05 PM EST."""
        return _time(_key(moment), zone, "medium" if seconds else "short", self.locale)

    def moment(self, moment: dt.datetime, zone: str) -> str:
        """A moment in a zone, in one line: November 21, 2026, 7:30 PM EST."""
        return f"{_date(_key(moment), zone, 'long', self.locale)}, {self.time(moment, zone)}"

    def zone(self, moment: dt.datetime, zone: str) -> str:
        """The short name of a zone at a moment: EST, in German MEZ, and UTC+05:45 where a zone has none."""
        return _zone(_key(moment), zone, self.locale)


# Many pages show the same numbers and moments: a waiting room says to each visitor when it begins.


def _key(moment: dt.datetime) -> dt.datetime:
    """The second of a moment, in UTC: moments of a zone are equal also if its clocks went back between them."""
    return moment.astimezone(dt.UTC).replace(microsecond=0)


@lru_cache(10_000)
def _number(number: int, locale: str) -> str:
    return format_decimal(number, locale=locale)


@lru_cache(1_000)
def _date(moment: dt.datetime, zone: str, width: Literal["full", "long"], locale: str) -> str:
    return format_date(clocked(moment, zone), width, locale=locale)


@lru_cache(1_000)
def _time(moment: dt.datetime, zone: str, width: Literal["medium", "short"], locale: str) -> str:
    local = clocked(moment, zone)
    return f"{format_time(local, width, locale=locale)} {_zone(moment, zone, locale)}"


@lru_cache(1_000)
def _zone(moment: dt.datetime, zone: str, locale: str) -> str:
    local = clocked(moment, zone)
    name = get_timezone_name(local, "short", locale=locale)
    # Ireland's standard time is in summer. CLDR would call it GMT.
    if name[0] in "+-" or (name == "GMT" and local.utcoffset()):
        name = local.tzname() or name
    if name[0] not in "+-":
        return name
    return f"UTC{name[:3]}:{name[3:]}" if name[3:] else f"UTC{name}"


def clocked(moment: dt.datetime, zone: str) -> dt.datetime:
    """A moment by the clock of a zone; by that of UTC if the zone has no date for it, at the ends of the calendar."""
    try:
        return moment.astimezone(ZoneInfo(zone))
    except OverflowError:
        return moment.astimezone(dt.UTC)


ENGLISH = Language("en", "English", "en_US")
GERMAN = Language("de", "Deutsch", "de_DE")
LANGUAGES = {each.code: each for each in (ENGLISH, GERMAN)}


def language_of(request: "Request") -> Language:
    """The language of a request: what its address asks for (`?lang=de`), or else the best its browser accepts."""
    asked = _asked(request.query) if b"lang=" in request.query else ""
    if asked in LANGUAGES:
        return _chosen(asked)
    return accepted(request.headers.get(b"accept-language", b""))


def in_language(query: bytes, code: str) -> str:
    """The address of the same page in another language, as seen from it: with the rest of its query as it is."""
    given = query.split(b"&") if len(query) <= MOST_KEPT else []
    kept = [quote(each, AS_IT_IS) for each in given if each and each.partition(b"=")[0] != b"lang"]
    return f"?{'&'.join([*kept, f'lang={code}'])}"


def _asked(query: bytes) -> str:
    try:
        return parse_qs(query.decode("latin-1"), max_num_fields=50).get("lang", [""])[-1]
    except ValueError:
        return ""


def named(code: str | None) -> Language:
    """The language with a code; English if there is none."""
    return LANGUAGES.get(code or "", ENGLISH)


@cache
def _chosen(code: str) -> Language:
    language = LANGUAGES[code]
    return Language(language.code, language.name, language.locale, chosen=True)


def accepted(header: bytes) -> Language:
    """The first of our languages in an Accept-Language header, by preference; English if it names none of them."""
    return _preferred(header[:1_000])


@lru_cache(1_000)
def _preferred(header: bytes) -> Language:
    best, most = ENGLISH, 0.0
    for part in header.decode("latin-1").lower().split(","):
        tag, _, quality = part.partition(";")
        language = LANGUAGES.get(tag.strip().partition("-")[0])
        weight = _WEIGHT.fullmatch(quality or "q=1")
        if language and weight and float(weight[1]) > most:
            best, most = language, float(weight[1])
    return best


@cache
def translations(code: str, folders: Sequence[Path]) -> Translations:
    """The texts of some folders in a language. Folders without a catalogue of the language are left out."""
    merged = Translations()
    for catalogue in (folder / "translations" / f"{code}.po" for folder in folders):
        if catalogue.exists():
            compiled = BytesIO()
            with catalogue.open("rb") as written:
                write_mo(compiled, read_po(written, code))
            compiled.seek(0)
            merged.merge(Translations(compiled))
    return merged
