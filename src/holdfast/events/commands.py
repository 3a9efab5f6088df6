"""The commands `holdfast events …` that only the events service has. Each imports what only it needs."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

if TYPE_CHECKING:
    from holdfast.events.keys.model import ApiKey
    from holdfast.events.resources import Tx

T = TypeVar("T")

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The organizer's slug.")]
Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="The claim `sub` of its access tokens.")]

keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="API keys of the events service.")
organizers = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Organizers of the events service.")


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Option(help="What the key is for.")],
    admin: Annotated[bool, typer.Option("--admin", help="A key that may do everything.")] = False,
    organizer: Annotated[int | None, typer.Option(help="Id of the organizer the key acts for.")] = None,
) -> None:
    """Make an API key and print it, once, alone on the last line."""
    if admin == (organizer is not None):
        raise typer.BadParameter("Say either --admin or --organizer ID.")

    from holdfast.events.keys.model import CreateKey
    from holdfast.events.keys.operations import create, mint
    from holdfast.kit.caller import ADMIN
    from holdfast.kit.command import check

    async def make(tx: "Tx") -> "ApiKey":
        command = check(CreateKey, {"name": name, "user_id": organizer})
        return await mint(tx, None, command.name) if admin else await create(tx, ADMIN, command)

    key = _transact(make)
    typer.echo(f"Key {key.id}, {name}. It is not shown again.")
    typer.echo(key.key)


@organizers.command()
def link(
    slug: Slug,
    subject: Subject,
    move: Annotated[bool, typer.Option("--move", help="Take it from the organizer it is linked to.")] = False,
) -> None:
    """Let access tokens of a subject of the authorization server (OAUTH_ISSUER) act for an organizer.

    For tokens without a verified e-mail address, with another one than the organizer's, or of a second subject.
    """
    from holdfast.events.oauth import operations
    from holdfast.events.oauth.model import LinkSubject
    from holdfast.kit.command import check

    command = check(LinkSubject, {"slug": slug, "subject": subject, "move": move})
    issuer = _issuer()
    organizer = _transact(lambda tx: operations.link(tx, issuer, command))
    typer.echo(f"{command.subject} of {issuer} acts for {organizer.slug}, organizer {organizer.id}.")


@organizers.command()
def unlink(subject: Subject) -> None:
    """Let access tokens of a subject of the authorization server (OAUTH_ISSUER) act for nobody, at once.

    Its address does not link it again; only `link` does.
    """
    from holdfast.events.oauth import operations
    from holdfast.events.oauth.model import UnlinkSubject
    from holdfast.kit.command import check

    command = check(UnlinkSubject, {"subject": subject})
    issuer = _issuer()
    organizer = _transact(lambda tx: operations.unlink(tx, issuer, command))
    typer.echo(f"{command.subject} of {issuer} acts for nobody any more; it did for {organizer.slug}.")


@organizers.command()
def subjects(slug: Slug) -> None:
    """List who acts for an organizer by access tokens.

    A line each, with tabs between: issuer, subject, the address that made the link (or - where an operator did),
    and since when.
    """
    from holdfast.events.oauth import operations
    from holdfast.events.oauth.model import ListSubjects
    from holdfast.kit.command import check

    command = check(ListSubjects, {"slug": slug})
    for each in _transact(lambda tx: operations.subjects(tx, command)):
        since = each.since.strftime("%Y-%m-%dT%H:%M:%SZ")
        typer.echo("\t".join((each.issuer, each.subject, each.email or "-", since)))


def _issuer() -> str:
    from holdfast.events.product import EVENTS
    from holdfast.kit.process import CannotStart

    issuer = EVENTS.configured().oauth_issuer
    if not issuer:
        raise CannotStart("Set OAUTH_ISSUER to the authorization server that the subject is of.")
    return issuer


def _transact(work: "Callable[[Tx], Awaitable[T]]") -> T:
    from holdfast.events.product import EVENTS

    return asyncio.run(EVENTS.transact(EVENTS.ready(EVENTS.configured()), work))
