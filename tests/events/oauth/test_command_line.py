"""Linking a subject by hand, as operators do where tokens carry no address."""

import psycopg
import pytest

from tests.support import Service
from tests.test_cli import holdfast

ISSUER = "https://login.example/"


class Operator:
    """Who has the command line and the database."""

    def __init__(self, url: str) -> None:
        self.url = url

    def link(self, *words: str, issuer: str = ISSUER, status: int = 0) -> str:
        """What the command prints, or its complaint."""
        done = holdfast("events", "organizer", "link", *words, EVENTS_DATABASE_URL=self.url, OAUTH_ISSUER=issuer)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr if status else done.stdout

    def links(self) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute("select issuer, subject, user_id, email from oauth_subjects").fetchall()


@pytest.fixture
def operator(database_url: str) -> Operator:
    return Operator(database_url)


def test_the_command_explains_itself() -> None:
    for words in (["organizer"], ["organizer", "link"]):
        explained = holdfast("events", *words, "--help")
        assert explained.returncode == 0
        assert "Usage" in explained.stdout


async def test_a_subject_is_linked_to_an_organizer(operator: Operator, service: Service) -> None:
    ada = await service.organizer()

    for _ in range(2):  # once more changes nothing
        said = operator.link(ada.slug, "auth0|[7]")
        assert said == f"auth0|[7] of {ISSUER} acts for {ada.slug}, organizer {ada.id}.\n"
    assert operator.links() == [(ISSUER, "auth0|[7]", ada.id, None)]


async def test_a_linked_subject_moves_only_when_told_to(operator: Operator, service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    operator.link(ada.slug, "ann")

    complaint = operator.link(ben.slug, "ann", status=1)
    assert f"is linked to {ada.slug}; --move takes it from there" in complaint
    assert operator.links() == [(ISSUER, "ann", ada.id, None)]

    operator.link(ben.slug, "ann", "--move")
    assert operator.links() == [(ISSUER, "ann", ben.id, None)]


async def test_without_an_authorization_server_there_are_no_subjects(operator: Operator, service: Service) -> None:
    ada = await service.organizer()

    assert operator.link(ada.slug, "ann", issuer="", status=1).startswith("Set OAUTH_ISSUER")
    assert operator.links() == []


async def test_only_organizers_are_linked_to(operator: Operator, service: Service) -> None:
    await service.run_sql(
        "insert into users (public_id, email, slug, role) values ('aaaaaaaa', 'root@example.com', 'root-root', 'admin')"
    )

    for slug in ("nobody", "root-root"):
        assert operator.link(slug, "ann", status=1) == f"No organizer has the slug {slug}.\n"
    for slug, subject in (("[/bold]", "ann"), ("nobody", ""), ("nobody", "a" * 256)):
        assert operator.link(slug, subject, status=1).startswith("Not acceptable: ")
    assert operator.links() == []
