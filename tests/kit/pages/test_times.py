"""Moments as people say them, with the exact one beside them."""

import datetime as dt
import re
from pathlib import Path

import pytest

from holdfast.kit.pages.language import ENGLISH, GERMAN, Language
from holdfast.kit.pages.layout import Frame

NOW = dt.datetime(2026, 11, 25, 22, 30, tzinfo=dt.UTC)
BERLIN = "Europe/Berlin"


@pytest.fixture(scope="module")
def frame(tmp_path_factory: pytest.TempPathFactory) -> Frame:
    folder: Path = tmp_path_factory.mktemp("templates")
    page = '{% from "times.html" import when with context %}{{ when(moment, zone, inside) }}'
    (folder / "page.html").write_text(page, encoding="utf-8")
    return Frame("Test", folder)


def written_time(frame: Frame, days: int, language: Language = ENGLISH, zone: str = "", *, inside: bool = False) -> str:
    moment = dt.datetime.now(dt.UTC).replace(hour=12, minute=5) + dt.timedelta(days=days)
    html = frame.render("page.html", language=language, moment=moment, zone=zone, inside=inside)
    return re.sub("[\u202f\u00a0]", " ", html)


@pytest.mark.parametrize(
    ("days", "first", "inside", "german"),
    [
        (0, ">Today, 12:05 PM UTC<", ">today, 12:05 PM UTC<", ">heute, 12:05 UTC<"),
        (-1, ">Yesterday, 12:05 PM UTC<", ">yesterday, 12:05 PM UTC<", ">gestern, 12:05 UTC<"),
        (1, ">Tomorrow, 12:05 PM UTC<", ">tomorrow, 12:05 PM UTC<", ">morgen, 12:05 UTC<"),
    ],
)
def test_days_near_today_have_their_names(frame: Frame, days: int, first: str, inside: str, german: str) -> None:
    assert first in written_time(frame, days)
    assert inside in written_time(frame, days, inside=True)
    assert german in written_time(frame, days, GERMAN, inside=True)


def test_the_exact_moment_is_in_the_title_and_for_programs(frame: Frame) -> None:
    html = written_time(frame, 0)

    today = dt.datetime.now(dt.UTC)
    exact = re.sub("[\u202f\u00a0]", " ", ENGLISH.moment(today.replace(hour=12, minute=5), "UTC"))
    assert f'title="{exact}"' in html
    assert f'datetime="{today:%Y-%m-%d}T12:05:' in html


def test_a_moment_is_left_to_the_browser_only_without_a_zone(frame: Frame) -> None:
    assert 'data-local="first"' in written_time(frame, 0)
    assert "data-local" not in written_time(frame, 0, zone=BERLIN)
    zone = GERMAN.zone(dt.datetime.now(dt.UTC), BERLIN)
    assert zone in ("MEZ", "MESZ")
    assert f" {zone}<" in written_time(frame, 0, GERMAN, BERLIN), "The zone of an event is named."


@pytest.mark.parametrize(
    ("moment", "zone", "days"),
    [
        (dt.datetime(2026, 11, 25, 23, 30, tzinfo=dt.UTC), "UTC", 0),
        (dt.datetime(2026, 11, 25, 23, 30, tzinfo=dt.UTC), BERLIN, 1),
        (dt.datetime(2026, 11, 24, 22, 59, tzinfo=dt.UTC), BERLIN, -1),
        (dt.datetime(2026, 11, 24, 23, 0, tzinfo=dt.UTC), BERLIN, 0),
    ],
)
def test_a_day_ends_at_midnight_of_its_zone(moment: dt.datetime, zone: str, days: int) -> None:
    assert ENGLISH.days_from_today(moment, zone, NOW) == days


def test_a_day_has_its_year_only_if_it_is_not_the_present_one() -> None:
    summer = dt.datetime(2026, 7, 1, 18, tzinfo=dt.UTC)

    assert (ENGLISH.day(summer, "UTC", NOW), GERMAN.day(summer, "UTC", NOW)) == ("July 1", "1. Juli")
    assert ENGLISH.day(summer.replace(year=2031), "UTC", NOW) == "July 1, 2031"
    assert GERMAN.day(summer.replace(year=2031), "UTC", NOW) == "1. Juli 2031"


@pytest.mark.parametrize(
    ("seconds", "english", "german"),
    [
        (0, "0 seconds", "0 Sekunden"),
        (1, "1 second", "1 Sekunde"),
        (119, "119 seconds", "119 Sekunden"),
        (119.5, "2 minutes", "2 Minuten"),
        (121, "3 minutes", "3 Minuten"),
        (7_140, "119 minutes", "119 Minuten"),
        (7_141, "2 hours", "2 Stunden"),
        (5_376 * 60, "4 days", "4 Tage"),
    ],
)
def test_a_duration_is_shown_in_its_usual_unit(seconds: float, english: str, german: str) -> None:
    assert (ENGLISH.duration(seconds), GERMAN.duration(seconds)) == (english, german)
