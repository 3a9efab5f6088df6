"""People are found by their names as they are shown, and as staff type them: without accents, in any case and order."""

# ruff: noqa: RUF001

import re
import unicodedata
from bisect import bisect
from collections import defaultdict
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from holdfast.events.check_in.model import FindPeople
from holdfast.events.check_in.operations import FIND_PEOPLE
from holdfast.events.console.people.registrations_pages import SEARCH
from holdfast.events.registrations import substring_search
from holdfast.events.registrations.search import SearchRegistrations
from holdfast.events.registrations.substring_search import IndexArguments
from holdfast.events.service import IDEMPOTENCY
from holdfast.kit.contract.caller import person
from holdfast.kit.operations.runner import Runner
from holdfast.kit.operations.steps import Steps
from tests.events.console.organizing import sign_in_organizer
from tests.helpers.events_service import Service
from tests.helpers.people import sign_up
from tests.programs.schema import schema_file

SEARCHES = [
    ("İREM ŞAHİN", "İREM ŞAHİN"),
    ("İREM ŞAHİN", "irem şahin"),
    ("İrem Şahin", "irem sahin"),
    ("Işık Yılmaz", "isik yilmaz"),
    ("Mu\u0308ller", "Müller"),
    ("Müller", "Mu\u0308ller"),
    ("José Núñez", "Jose Nunez"),
    ("Łukasz Żółć", "Lukasz Zolc"),
    ("Nguyễn Văn Đức", "Nguyen Van Duc"),
    ("Großmann", "GROSSMANN"),
    ("GROSSMANN", "Großmann"),
    ("Bjørn Æbeløe", "Bjorn Aebeloe"),
    ("Þóra Guðmundsdóttir", "Thora Gudmundsdottir"),
    ("O’Brien", "O'Brien"),
    ("O'Brien", "O’Brien"),
    ("O´Brien", "o'brien"),
    ("Anne‑Marie", "anne-marie"),
    ("Ａｋｉｒａ　Ｔａｎａｋａ", "akira tanaka"),
    ("tanaka", "ＴＡＮＡＫＡ"),
    ("ΓΙΏΡΓΟΣ", "Γιώργος"),
    ("Γιώργος", "γιωργος"),
    ("Артём Королёв", "артем королев"),
    ("МОСКВИН", "москвин"),
    ("Ստեփան", "ՍՏԵՓԱՆ"),
    ("مُحَمَّد", "محمد"),
    ("أحمد", "احمد"),
    ("שָׁלוֹם", "שלום"),
    ("ｶﾞｸﾄ", "ガクト"),
    ("John De La Doe", "john doe"),
    ("Naruto Uzumaki", "Uzumaki Naruto"),
    ('Richard "Rez" Roe', "Richard Roe"),
    ("An\u200bna So\u00adfia", "anna sofia"),
    ("Anna", "An\u200bna\u2060"),
    ("100% Wool_Blend", "100% wool_"),
]
"""Names as they are stored, and what an organizer types who means them."""

OTHERS = [
    ("Anna", "Anne"),
    ("Müller", "Miller"),
    ("ガク", "カク゚"),
    ("राम", "रमा"),
    ("김철수", "김철호"),
    ("Wool%", "Wool_"),
]


async def rename(service: Service, name: str) -> None:
    await service.run_sql("update registrations set name = %(name)s", name=name)


class Door:
    """An event of one organizer with one registration, whose name changes."""

    def __init__(self, service: Service, organizer_id: int, event_id: int) -> None:
        self._caller = person(1, organizer_id)
        self._event_id = event_id
        self._run = Runner((SEARCH, FIND_PEOPLE), service.database, IDEMPOTENCY)

    async def finds(self, text: str) -> tuple[bool, bool]:
        """Whether the console, and the check-in, find the person by a text."""
        listed = await self._run.run_of(SEARCH)(self._caller, SearchRegistrations(event_id=self._event_id, text=text))
        matches = await self._run.run_of(FIND_PEOPLE)(self._caller, FindPeople(event_id=self._event_id, text=text))
        return bool(listed.registrations), bool(matches)


@pytest.fixture
async def door(service: Service) -> Door:
    ada = await service.organizer()
    event = await ada.create_event(capacity=6)
    await sign_up(service, event, "ann")
    return Door(service, ada.id, event["id"])


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_a_person_is_found_as_the_name_is_shown_and_as_it_is_typed(
    service: Service, door: Door, is_indexed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_indexed:
        monkeypatch.setattr(substring_search, "MAX_SCANNED_ROWS", "0")
        await service.run_sql("insert into searched_events (event_id) values (1)")
        await substring_search.index(Steps(service.database), IndexArguments(1))
    for name, text in SEARCHES:
        await rename(service, name)
        assert await door.finds(text) == (True, True), (name, text)
        assert await door.finds(name) == (True, True), name


async def test_a_name_with_other_letters_is_not_found(service: Service, door: Door) -> None:
    for name, text in OTHERS:
        await rename(service, name)
        assert await door.finds(text) == (False, False), (name, text)


async def test_events_are_found_by_their_titles_in_the_same_way(service: Service) -> None:
    ada, browser = await sign_in_organizer(service)
    await ada.create_event(title="Soirée d’été à l’Élysée")

    assert "Soirée" in (await browser.get("/console?q=elysee+SOIREE")).text
    assert "Soirée" not in (await browser.get("/console?q=elysee+matinee")).text


def test_both_services_fold_by_the_same_function() -> None:
    definitions = [
        re.findall(r"CREATE FUNCTION fold_text\(.*?\$\$;", schema_file(service).read_text(encoding="utf-8"), re.DOTALL)
        for service in ("events", "inventory")
    ]

    assert len(definitions[0]) == 1
    assert definitions[0] == definitions[1]


@pytest.fixture(scope="module")
def connection(template_url: str) -> Any:
    with psycopg.connect(template_url, autocommit=True) as connection:
        yield connection


def fold(connection: psycopg.Connection[Any], *texts: str) -> list[str]:
    rows = connection.execute(
        "select fold_text(text) from unnest(%s::text[]) with ordinality as t (text, n) order by n", [[*texts]]
    )
    return [folded for (folded,) in rows]


SCRIPTS = (
    "LATIN",
    "GREEK",
    "CYRILLIC",
    "ARMENIAN",
    "HIRAGANA",
    "KATAKANA",
    "HANGUL SYLLABLE",
    "ARABIC LETTER",
    "HEBREW LETTER",
)
LETTERS = [
    letter
    for letter in map(chr, range(0x20, 0x30000))
    if unicodedata.category(letter)[0] == "L"
    and unicodedata.name(letter, "").startswith(SCRIPTS)
    # Their capitals are two letters, or those of other letters: ancient Greek, and forms of letters in old prints.
    and not (unicodedata.name(letter).endswith("GEGRAMMENI") or "\u1c80" <= letter <= "\u1c88")
]
"""Letters of scripts that have cases, accents or forms."""

names = st.lists(st.text(st.sampled_from(LETTERS), min_size=1, max_size=8), min_size=1, max_size=3).map(" ".join)
forms = st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"])
cases = st.sampled_from([str.upper, str.lower, str.casefold, str.title, str])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=120)
@given(
    name=names,
    form=forms,
    case=cases,
    marks=st.sampled_from(["", "\u200b", "\u00ad", "\u0301", "\u2060"]),
    with_accents=st.booleans(),
)
@example(name="Großmann", form="NFC", case=str.upper, marks="", with_accents=True)
@example(name="ΟΔΥΣΣΕΥΣ", form="NFC", case=str.lower, marks="", with_accents=True)
@example(name="Müller", form="NFC", case=str.lower, marks="", with_accents=False)
def test_a_name_has_one_fold_however_it_is_written(
    connection: psycopg.Connection[Any], name: str, form: Any, case: Any, marks: str, with_accents: bool
) -> None:
    typed = name if with_accents else re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", name))
    written = marks.join([*unicodedata.normalize(form, case(typed)), ""])

    first, second, again = fold(connection, name, written, *fold(connection, name))

    assert first == second
    assert first == again


PLAIN_LETTERS = str.maketrans("øłđðħıŧŋĸƀɓƈɖɗƒɠɨƙƚɲɵƥƭʈʉʋƴƶɛɔəς", "olddhitnkbbcddfgiklnopttuvyzeoeσ")
"""Letters that Unicode does not decompose, and those that people type for them."""


def base(text: str) -> str:
    """The letters of a text alone, as Unicode has them."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(letter for letter in decomposed if unicodedata.category(letter)[0] in "LZ").translate(PLAIN_LETTERS)


def test_letters_with_one_fold_are_forms_of_one_letter(connection: psycopg.Connection[Any]) -> None:
    bases: dict[str, set[str]] = defaultdict(set)
    for letter, folded in zip(LETTERS, fold(connection, *LETTERS), strict=True):
        bases[folded].add(base(letter))

    assert len(bases) < len(LETTERS) - 500
    assert {folded: letters for folded, letters in bases.items() if len(letters) > 1} == {}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
@given(name=names, place=st.integers(0, 30), distance=st.integers(1, 60))
def test_names_with_other_letters_have_other_folds(
    connection: psycopg.Connection[Any], name: str, place: int, distance: int
) -> None:
    place %= len(name)
    near_letter = LETTERS[(bisect(LETTERS, name[place]) + distance) % len(LETTERS)]
    other = name[:place] + near_letter + name[place + 1 :]

    first, second = fold(connection, name, other)

    assert (first != second) or base(name) == base(other), (name, other)
