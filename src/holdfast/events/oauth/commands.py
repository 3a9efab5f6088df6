"""`holdfast events organizer`: who of the authorization server acts for which organizer, by the operator's word."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from holdfast.events.oauth import operations
from holdfast.events.oauth.model import LinkSubject, ListSubjects, UnlinkSubject
from holdfast.events.settings import Settings, Tx
from holdfast.kit.command import check
from holdfast.kit.process import CannotStart, Product

T = TypeVar("T")

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The organizer's slug.")]
Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="The claim `sub` of its access tokens.")]


def commands(product: Product[Settings]) -> typer.Typer:
    """What can be told of organizers: link, unlink, subjects."""
    group = typer.Typer(no_args_is_help=True, help="Organizers of the events service.")

    @group.command()
    def link(
        slug: Slug,
        subject: Subject,
        move: Annotated[bool, typer.Option("--move", help="Take it from the organizer it is linked to.")] = False,
    ) -> None:
        """Let access tokens of a subject of the authorization server (OAUTH_ISSUER) act for an organizer.

        For tokens without a verified e-mail address, with another one than the organizer's, or of a second subject.
        """
        command = check(LinkSubject, {"slug": slug, "subject": subject, "move": move})
        issuer = named_issuer()
        organizer = transact(lambda tx: operations.link(tx, issuer, command))
        typer.echo(f"{command.subject} of {issuer} acts for {organizer.slug}, organizer {organizer.id}.")

    @group.command()
    def unlink(subject: Subject) -> None:
        """Let access tokens of a subject of the authorization server (OAUTH_ISSUER) act for nobody, at once.

        Its address does not link it again; only `link` does.
        """
        command = check(UnlinkSubject, {"subject": subject})
        issuer = named_issuer()
        organizer = transact(lambda tx: operations.unlink(tx, issuer, command))
        typer.echo(f"{command.subject} of {issuer} acts for nobody any more; it did for {organizer.slug}.")

    @group.command()
    def subjects(slug: Slug) -> None:
        """List who acts for an organizer by access tokens.

        A line each, with tabs between: issuer, subject, the address that made the link (or - where an operator did),
        and since when.
        """
        command = check(ListSubjects, {"slug": slug})
        for each in transact(lambda tx: operations.subjects(tx, command)):
            since = each.since.strftime("%Y-%m-%dT%H:%M:%SZ")
            typer.echo("\t".join((each.issuer, each.subject, each.email or "-", since)))

    def named_issuer() -> str:
        issuer = product.configured().oauth_issuer
        if not issuer:
            raise CannotStart("Set OAUTH_ISSUER to the authorization server that the subject is of.")
        return issuer

    def transact(work: Callable[[Tx], Awaitable[T]]) -> T:
        return asyncio.run(product.transact(product.ready(product.configured()), work))

    _ = link, unlink, subjects
    return group
