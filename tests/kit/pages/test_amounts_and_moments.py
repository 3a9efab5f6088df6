"""Numbers, prices and moments are written as people of the language write them."""

import re
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kit.pages.language import ENGLISH, GERMAN, LANGUAGES

SUMMER, WINTER = datetime(2026, 7, 1, 12, 30, tzinfo=UTC), datetime(2026, 12, 1, 12, 30, tzinfo=UTC)


def plain(text: str) -> str:
    """The text with ordinary spaces."""
    return re.sub(r"\s", " ", text)


@pytest.mark.parametrize(
    ("amount", "currency", "digits", "english", "german"),
    [
        (0, "EUR", 2, "€0.00", "0,00 €"),
        (5, "EUR", 2, "€0.05", "0,05 €"),
        (1200, "USD", 2, "$12.00", "12,00 $"),
        (1250, "USD", 2, "$12.50", "12,50 $"),
        (-1250, "USD", 2, "-$12.50", "-12,50 $"),
        (123456, "CHF", 2, "CHF 1,234.56", "1.234,56 CHF"),
        (123456, "CAD", 2, "CA$1,234.56", "1.234,56 CA$"),
        (120000, "JPY", 0, "¥120,000", "120.000 ¥"),
        (2500, "XOF", 0, "F CFA 2,500", "2.500 F CFA"),
        (1234567, "KWD", 3, "KWD 1,234.567", "1.234,567 KWD"),
        (1234000, "KWD", 3, "KWD 1,234.000", "1.234,000 KWD"),
        (10**18, "VND", 0, "₫1,000,000,000,000,000,000", "1.000.000.000.000.000.000 ₫"),
    ],
)
def test_an_amount_has_all_digits_of_its_currency(
    amount: int, currency: str, digits: int, english: str, german: str
) -> None:
    assert plain(ENGLISH.money(amount, currency, digits)) == english
    assert plain(GERMAN.money(amount, currency, digits)) == german


@given(st.integers(-(10**18), 10**18), st.sampled_from([("EUR", 2), ("JPY", 0), ("KWD", 3), ("XOF", 0)]))
def test_no_unit_of_an_amount_is_lost(amount: int, currency: tuple[str, int]) -> None:
    for language in LANGUAGES.values():
        written = language.money(amount, *currency)
        digits = int("".join(filter(str.isdigit, written)))
        assert abs(amount) == digits
        assert ("-" in written) == (amount < 0)


def test_numbers_are_grouped() -> None:
    assert (ENGLISH.number(1_234_567), GERMAN.number(1_234_567)) == ("1,234,567", "1.234.567")
    assert (ENGLISH.number(0), GERMAN.number(-1)) == ("0", "-1")


@pytest.mark.parametrize(
    ("zone", "summer", "winter", "sommer", "winters"),
    [
        ("Europe/Berlin", "2:30 PM CEST", "1:30 PM CET", "14:30 MESZ", "13:30 MEZ"),
        ("Europe/London", "1:30 PM BST", "12:30 PM GMT", "13:30 BST", "12:30 GMT"),
        ("Europe/Dublin", "1:30 PM IST", "12:30 PM GMT", "13:30 IST", "12:30 GMT"),
        ("America/New_York", "8:30 AM EDT", "7:30 AM EST", "08:30 EDT", "07:30 EST"),
        ("Asia/Kathmandu", "6:15 PM UTC+05:45", "6:15 PM UTC+05:45", "18:15 UTC+05:45", "18:15 UTC+05:45"),
        ("America/Sao_Paulo", "9:30 AM UTC-03", "9:30 AM UTC-03", "09:30 UTC-03", "09:30 UTC-03"),
        ("UTC", "12:30 PM UTC", "12:30 PM UTC", "12:30 UTC", "12:30 UTC"),
    ],
)
def test_a_time_is_shown_in_its_zone_in_summer_and_winter_with_the_name_of_the_zone(
    zone: str, summer: str, winter: str, sommer: str, winters: str
) -> None:
    assert [plain(ENGLISH.time(moment, zone)) for moment in (SUMMER, WINTER)] == [summer, winter]
    assert [plain(GERMAN.time(moment, zone)) for moment in (SUMMER, WINTER)] == [sommer, winters]


def test_the_hour_that_comes_twice_is_distinguished_by_its_zone() -> None:
    first = datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    moments = first, first + timedelta(hours=1)

    for zone_of_input in (UTC, ZoneInfo("Europe/Berlin")):
        times = [GERMAN.time(moment.astimezone(zone_of_input), "Europe/Berlin") for moment in moments]
        assert times == ["02:30\u00a0MESZ", "02:30\u00a0MEZ"]


def test_a_moment_has_its_day_which_may_be_another_one_than_in_utc() -> None:
    late = datetime(2026, 12, 31, 23, 30, 5, tzinfo=UTC)

    assert plain(ENGLISH.moment(late, "Asia/Tokyo")) == "January 1, 2027, 8:30 AM JST"
    assert plain(GERMAN.moment(late, "Asia/Tokyo")) == "1. Januar 2027, 08:30 JST"
    assert ENGLISH.date(late, "Asia/Tokyo") == "Friday, January 1, 2027"
    assert GERMAN.date(late, "UTC") == "Donnerstag, 31. Dezember 2026"
    assert plain(ENGLISH.time(late, "UTC", seconds=True)) == "11:30:05 PM UTC"
    assert plain(GERMAN.time(late, "UTC", seconds=True)) == "23:30:05 UTC"


@given(
    st.datetimes(datetime(1970, 1, 2), datetime(9000, 1, 1), timezones=st.just(UTC)),
    st.sampled_from(sorted(available_timezones() - {"Factory", "localtime"})),
)
def test_every_moment_is_shown_in_every_zone_with_its_local_minutes(moment: datetime, zone: str) -> None:
    local = moment.astimezone(ZoneInfo(zone))
    for language in LANGUAGES.values():
        assert f"{local:%M}" in language.moment(moment, zone)
        assert str(local.year) in language.date(moment, zone)
        assert re.fullmatch(r"UTC[+-]\d\d(:\d\d)?|[A-Za-z]{2,6}", language.zone(moment, zone))


def test_the_zone_in_which_a_moment_is_given_does_not_change_its_text() -> None:
    moment = SUMMER.astimezone(timezone(timedelta(hours=-7)))

    assert GERMAN.moment(moment, "Europe/Berlin") == GERMAN.moment(SUMMER, "Europe/Berlin")


def test_a_text_that_many_rows_show_is_written_once() -> None:
    for write in (
        lambda: GERMAN.money(72_00, "EUR"),
        lambda: GERMAN.day(SUMMER, "Europe/Berlin", WINTER),
        lambda: GERMAN.day(SUMMER, "Europe/Berlin", SUMMER.replace(year=2020)),
        lambda: GERMAN.duration(90),
    ):
        assert write() is write()


def test_equal_amounts_differ_by_currency_and_language() -> None:
    texts = {language.money(100, *currency) for language in LANGUAGES.values() for currency in (("EUR", 2), ("JPY", 0))}

    assert len(texts) == 4
