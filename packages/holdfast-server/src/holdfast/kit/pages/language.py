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
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import parse_qs, quote, urlencode
from zoneinfo import ZoneInfo

from babel import Locale
from babel.dates import format_date, format_skeleton, format_time, get_timezone_name
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import format_currency, format_decimal, get_currency_symbol, get_decimal_symbol
from babel.support import Translations
from babel.units import format_unit
from msgspec import Struct

from holdfast.kit.contract.csv_cells import CsvFormat, csv_format

if TYPE_CHECKING:
    from holdfast.kit.http.handler import Request

MAX_QUERY_BYTES = 8_000
"""The maximum length of a query that links to other languages keep, in bytes."""

UNQUOTED = "!$'()*+,/:;=?@%"
"""Characters of a query that are not percent-encoded, in addition to letters and digits."""

DASH = "\N{EN DASH}"
"""The dash between a start and an end."""

_WEIGHT = re.compile(r"\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*", re.IGNORECASE)


class Language(Struct, frozen=True):
    """A language that pages and mails are written in.

    code            its ISO 639 code
    name            its name in the language itself
    chosen          whether the URL names it, so that links name it too
    query_fields    further names and values in the query of links to other pages
    """

    code: str
    name: str
    locale: str
    chosen: bool = False
    query_fields: tuple[tuple[str, str], ...] = ()

    def at(self, path: str) -> str:
        """The URL of another page of this site, in this language if the visitor has chosen it."""
        if not self.query:
            return path
        path, mark, fragment = path.partition("#")
        return f"{path}{'&' if '?' in path else '?'}{_encoded_query(self.query)}{mark}{fragment}"

    @property
    def query(self) -> tuple[tuple[str, str], ...]:
        """The query parameters of every link. A form that is sent by GET needs hidden fields for them."""
        return (*self.query_fields, ("lang", self.code)) if self.chosen else self.query_fields

    @property
    def csv_format(self) -> CsvFormat:
        """How spreadsheet programs of the language write CSV."""
        return csv_format(self.decimal_mark)

    @property
    def decimal_mark(self) -> str:
        """What stands before the decimals of a number: a point, or in German a comma."""
        return get_decimal_symbol(self.locale)

    def duration(self, seconds: float) -> str:
        """How long something takes, rounded up, in the unit that people would name: `12 minutes`, `4 days`."""
        return _duration(seconds, self.locale)

    def number(self, number: float) -> str:
        return _number(number, self.locale)

    def money(self, amount: int, currency: str, digits: int = 2) -> str:
        """A formatted amount in minor units of a currency, always with all digits: €72.00 beside €3.59.

        digits    the number of digits of the minor unit
        """
        return _money(amount, currency, digits, self.locale)

    def date(self, moment: dt.datetime, zone: str) -> str:
        """The day of a moment in a zone: Saturday, November 21, 2026."""
        return _date(_key(moment), zone, "full", self.locale)

    def time(self, moment: dt.datetime, zone: str, *, seconds: bool = False) -> str:
        """The time of a moment in a zone, with the zone: 7:30 PM EST, with seconds 7:30:05 PM EST."""
        return _time(_key(moment), zone, "medium" if seconds else "short", self.locale)

    def moment(self, moment: dt.datetime, zone: str) -> str:
        """A moment in a zone, in one line: November 21, 2026, 7:30 PM EST."""
        return f"{_date(_key(moment), zone, 'long', self.locale)}, {self.time(moment, zone)}"

    def month(self, moment: dt.datetime, zone: str) -> str:
        """The month of a moment in a zone: November 2026."""
        return _skeleton(_key(moment), zone, "yMMMM", self.locale)

    def short_day(self, moment: dt.datetime, zone: str) -> str:
        """The day of a moment in a zone, short: Nov 21."""
        return _skeleton(_key(moment), zone, "MMMd", self.locale)

    def clock(self, moment: dt.datetime, zone: str) -> str:
        """The time of a moment in a zone, without the zone: 7:30 PM."""
        return _clock(_key(moment), zone, self.locale)

    def day(self, moment: dt.datetime, zone: str, now: dt.datetime | None = None) -> str:
        """The day of a moment in a zone: November 21; with the year if it is another one than that of `now`.

        now    by default the time of the process
        """
        local = local_time(moment, zone)
        if local.year == local_time(now or dt.datetime.now(dt.UTC), zone).year:
            return _skeleton(_key(moment), zone, "MMMMd", self.locale)
        return _date(_key(moment), zone, "long", self.locale)

    def days_from_today(self, moment: dt.datetime, zone: str, now: dt.datetime | None = None) -> int:
        """Days from today to the day of a moment, in a zone: -1 for yesterday.

        now    by default the time of the process
        """
        today = local_time(now or dt.datetime.now(dt.UTC), zone).date()
        return (local_time(moment, zone).date() - today).days

    def times(self, start: dt.datetime, end: dt.datetime | None, zone: str) -> str:
        """The time of a start and an end in a zone: 7:30 PM - 9:00 PM EST; of the start alone without an end.

        An end on another day comes with that day: 7:30 PM - Sunday, November 22, 2026, 1:00 AM EST. The dash
        is an en dash.
        """
        return self.time(start, zone) if end is None else _times(_key(start), _key(end), zone, self.locale)

    def period(self, start: dt.datetime, end: dt.datetime | None, zone: str) -> str:
        """The day and the times of a start and an end in a zone: Sat, Nov 21, 2026, 7:30 PM - 9:00 PM EST."""
        return f"{_skeleton(_key(start), zone, 'yMMMEd', self.locale)}, {self.times(start, end, zone)}"

    def zone(self, moment: dt.datetime, zone: str) -> str:
        """The short name of a zone at a moment: EST, in German MEZ, and UTC+05:45 if the zone has no name."""
        return _zone(_key(moment), zone, self.locale)


# Many pages show the same numbers and moments: a waiting room shows its start to every visitor.


@lru_cache(1_000)
def _encoded_query(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)


def _key(moment: dt.datetime) -> dt.datetime:
    """The moment in UTC, in whole seconds. Local times would be equal before and after the clocks of a zone go back."""
    return moment.astimezone(dt.UTC).replace(microsecond=0)


@lru_cache(10_000)
def _number(number: float, locale: str) -> str:
    return format_decimal(number, locale=locale)


@lru_cache(10_000)
def _money(amount: int, currency: str, digits: int, locale: str) -> str:
    value = Decimal(amount).scaleb(-digits)
    pattern = Locale.parse(locale).currency_formats["standard"].pattern
    if get_currency_symbol(currency, locale)[-1].isalpha():
        pattern = pattern.replace("¤", "¤\u00a0", 1) if pattern.startswith("¤") else pattern
    money_pattern = pattern.replace("0.00", f"0.{'0' * digits}" if digits else "0")
    return format_currency(value, currency, money_pattern, locale=locale, currency_digits=False)


@lru_cache(1_000)
def _date(moment: dt.datetime, zone: str, width: Literal["full", "long"], locale: str) -> str:
    return format_date(local_time(moment, zone), width, locale=locale)


@lru_cache(1_000)
def _skeleton(moment: dt.datetime, zone: str, skeleton: str, locale: str) -> str:
    return format_skeleton(skeleton, local_time(moment, zone), locale=locale)


@lru_cache(1_000)
def _time(moment: dt.datetime, zone: str, width: Literal["medium", "short"], locale: str) -> str:
    local = local_time(moment, zone)
    # No line ends before the zone.
    return f"{format_time(local, width, locale=locale)}\N{NO-BREAK SPACE}{_zone(moment, zone, locale)}"


@lru_cache(1_000)
def _clock(moment: dt.datetime, zone: str, locale: str) -> str:
    return format_time(local_time(moment, zone), "short", locale=locale)


@lru_cache(1_000)
def _times(start: dt.datetime, end: dt.datetime, zone: str, locale: str) -> str:
    begins = format_time(local_time(start, zone), "short", locale=locale)
    if (name := _zone(start, zone, locale)) != _zone(end, zone, locale):
        begins = f"{begins} {name}"
    ends = _time(end, zone, "short", locale)
    if local_time(start, zone).date() == local_time(end, zone).date():
        # Between two times that are digits alone, people write the dash without spaces.
        return f"{begins}{DASH}{ends}" if begins.replace(":", "").isdigit() else f"{begins} {DASH} {ends}"
    return f"{begins} {DASH} {_date(end, zone, 'full', locale)}, {ends}"


UNITS = (("second", 1, 120), ("minute", 60, 120), ("hour", 3_600, 48))
"""Units of time with their seconds, and how many of each are named before the next unit is used."""


def _duration(seconds: float, locale: str) -> str:
    for unit, length, max_count in UNITS:
        if (count := ceil(seconds / length)) < max_count:
            return _units(count, unit, locale)
    return _units(ceil(seconds / 86_400), "day", locale)


@lru_cache(1_000)
def _units(count: int, unit: str, locale: str) -> str:
    return format_unit(count, f"duration-{unit}", locale=locale)


@lru_cache(1_000)
def _zone(moment: dt.datetime, zone: str, locale: str) -> str:
    local = local_time(moment, zone)
    name = get_timezone_name(local, "short", locale=locale)
    # Ireland's standard time is in summer. CLDR would name it GMT.
    if name[0] in "+-" or (name == "GMT" and local.utcoffset()):
        name = local.tzname() or name
    if name[0] not in "+-":
        return name
    return f"UTC{name[:3]}:{name[3:]}" if name[3:] else f"UTC{name}"


def local_time(moment: dt.datetime, zone: str) -> dt.datetime:
    """A moment in the local time of a zone; in UTC at the ends of the calendar, where the zone has no date for it."""
    try:
        return moment.astimezone(ZoneInfo(zone))
    except OverflowError:
        return moment.astimezone(dt.UTC)


ENGLISH = Language("en", "English", "en_US")
GERMAN = Language("de", "Deutsch", "de_DE")
LANGUAGES = {language.code: language for language in (ENGLISH, GERMAN)}


def language_of(request: "Request") -> Language:
    """The language of a request: the one in its URL (`?lang=de`), or else the one that the browser prefers."""
    requested = _requested_code(request.query) if b"lang=" in request.query else ""
    if requested in LANGUAGES:
        return _chosen_language(requested)
    return accepted_language(request.headers.get(b"accept-language", b""))


def query_in_language(query: bytes, code: str) -> str:
    """The relative URL of the same page in another language, with the other query parameters unchanged."""
    parameters = query.split(b"&") if len(query) <= MAX_QUERY_BYTES else []
    retained_parameters = [
        quote(parameter, UNQUOTED) for parameter in parameters if parameter and parameter.partition(b"=")[0] != b"lang"
    ]
    return f"?{'&'.join([*retained_parameters, f'lang={code}'])}"


def _requested_code(query: bytes) -> str:
    try:
        return parse_qs(query.decode("latin-1"), max_num_fields=50).get("lang", [""])[-1]
    except ValueError:
        return ""


def language_with_code(code: str | None) -> Language:
    """The language with a code; English for an unknown code."""
    return LANGUAGES.get(code or "", ENGLISH)


@cache
def _chosen_language(code: str) -> Language:
    language = LANGUAGES[code]
    return Language(language.code, language.name, language.locale, chosen=True)


def accepted_language(header: bytes) -> Language:
    """The preferred language of an Accept-Language header; English if it names no language that we have."""
    return _preferred_language(header[:1_000])


@lru_cache(1_000)
def _preferred_language(header: bytes) -> Language:
    codes = (tag.lower().partition("-")[0] for tag in accepted_tags(header))
    return next((LANGUAGES[code] for code in codes if code in LANGUAGES), ENGLISH)


def accepted_tags(header: bytes) -> list[str]:
    """The tags of an Accept-Language header, such as `de-AT`, the most preferred first; not those with `q=0`."""
    weights: dict[str, float] = {}
    for part in header[:1_000].decode("latin-1").split(","):
        tag, _, quality = part.partition(";")
        weight = _WEIGHT.fullmatch(quality or "q=1")
        if weight and float(weight[1]):
            weights[tag.strip()] = max(float(weight[1]), weights.get(tag.strip(), 0))
    return sorted(weights, key=weights.__getitem__, reverse=True)


@cache
def translations(code: str, folders: Sequence[Path]) -> Translations:
    """The translations of some folders into a language. Folders without a catalogue of the language are skipped."""
    merged = Translations()
    for catalogue in (folder / "translations" / f"{code}.po" for folder in folders):
        if catalogue.exists():
            compiled = BytesIO()
            with catalogue.open("rb") as po_file:
                write_mo(compiled, read_po(po_file, code))
            compiled.seek(0)
            merged.merge(Translations(compiled))
    return merged
