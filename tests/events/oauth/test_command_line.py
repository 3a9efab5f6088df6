"""The commands on subjects; `test_subjects_by_hand.py` has their effects."""

import re

import psycopg
import pytest

from tests.helpers.command_line import run_holdfast
from tests.helpers.events_service import Service

ISSUER = "https://login.example/"


class SubjectOperator:
    """An operator, who has the command line and the database."""

    def __init__(self, url: str) -> None:
        self.url = url

    def says(self, *words: str, issuer: str = ISSUER, status: int = 0) -> str:
        """What the command prints, or its complaint."""
        done = run_holdfast("events", "organizer", *words, EVENTS_DATABASE_URL=self.url, OAUTH_ISSUER=issuer)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr if status else done.stdout

    def links(self) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute("select issuer, subject, user_id, email from oauth_subjects").fetchall()


@pytest.fixture
def operator(database_url: str) -> SubjectOperator:
    return SubjectOperator(database_url)


async def test_a_subject_is_linked_listed_moved_and_unlinked(operator: SubjectOperator, service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()

    output = operator.says("link", ada.slug, "auth0|[7]")
    assert output == f"auth0|[7] of {ISSUER} acts for {ada.slug}, organizer {ada.id}.\n"
    assert operator.links() == [(ISSUER, "auth0|[7]", ada.id, None)]

    seen = operator.says("subjects", ada.slug, issuer="")
    assert re.fullmatch(rf"{re.escape(ISSUER)}\tauth0\|\[7\]\t-\t\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ\n", seen)

    output = operator.says("link", ben.slug, "auth0|[7]", status=1)
    assert f"is linked to {ada.slug}; --move takes it from there" in output
    operator.says("link", ben.slug, "auth0|[7]", "--move")
    assert operator.links() == [(ISSUER, "auth0|[7]", ben.id, None)]

    output = operator.says("unlink", "auth0|[7]")
    assert output == f"auth0|[7] of {ISSUER} no longer acts for {ben.slug}.\n"
    assert operator.links() == [(ISSUER, "auth0|[7]", None, None)]


async def test_the_address_that_made_a_link_is_shown(operator: SubjectOperator, service: Service) -> None:
    ada = await service.organizer()
    await service.run_sql(
        "insert into oauth_subjects (hash, issuer, subject, user_id, email, since)"
        " values (sha256('https://a\nann'), 'https://a', 'ann', %(id)s, 'ann@example.com', '2026-08-01T12:00:00+02')",
        id=ada.id,
    )

    assert operator.says("subjects", ada.slug) == "https://a\tann\tann@example.com\t2026-08-01T10:00:00Z\n"


def test_a_subject_cannot_be_linked_without_an_authorization_server(operator: SubjectOperator) -> None:
    assert operator.says("link", "ada", "ann", issuer="", status=1).startswith("Set OAUTH_ISSUER")
    assert operator.links() == []


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("link", "nobody", "ann"), "No organizer has the slug nobody.\n"),
        (("link", "[/bold]", ""), "Not acceptable: slug, subject."),
        (("unlink", "ann"), f"ann of {ISSUER} is not linked.\n"),
    ],
)
def test_a_command_on_subjects_that_fails_prints_one_line_with_the_reason(
    operator: SubjectOperator, words: tuple[str, ...], complaint: str
) -> None:
    assert operator.says(*words, status=1).startswith(complaint)
    assert operator.links() == []
