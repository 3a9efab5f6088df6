"""The page of frauds has the table of the tests, and each fraud of it is planted by a test."""

from pathlib import Path

from tests.events.log import fraud_table

TESTS = Path(__file__).parents[1] / "events"
PLANTED_BY = ("log/test_frauds_in_a_service.py", "draws/test_draw_frauds_in_a_service.py")


def test_the_page_of_frauds_has_the_table_of_the_tests() -> None:
    assert fraud_table.PAGE.read_text(encoding="utf-8") == fraud_table.page()


def test_the_frauds_of_the_table_are_planted_by_a_test() -> None:
    sources = "".join((TESTS / path).read_text(encoding="utf-8") for path in PLANTED_BY)

    assert [name for name in fraud_table.FRAUDS if f'"{name}"' not in sources] == []
