"""The commands `holdfast events organizer` and `console-link`. Each does its own imports: `--help` stays fast."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast_verify.terminal import iso_time, tab_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.events.resources import Tx
    from holdfast.events.users.model import User

Slug = Annotated[str, typer.Argument(metavar="SLUG", help="The organizer's slug.")]
Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="The claim `sub` of its access tokens.")]

USUAL_PORT = 8002

organizers = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Organizers of the events service.")


@organizers.command("add")
def add_organizer(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, as the public sees it.")],
    email: Annotated[str, typer.Option(metavar="ADDRESS", help="Whose e-mail address signs in to its console.")],
    slug: Annotated[str, typer.Option(help="The last part of its address; made from the name if left out.")] = "",
) -> None:
    """Make an organizer and its first API key.

    The key is printed once, alone on the last line. The owner of the address signs in with a link that is mailed there;
    mails about the organizer's events wait until then.
    """
    from holdfast.events.organizers.model import Registered, RegisterOrganizer
    from holdfast.events.organizers.operations import register
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.caller import ADMIN
    from holdfast.kit.contract.command import check
    from holdfast.kit.process import served_address

    command = check(RegisterOrganizer, {"name": name, "email": email, "slug": slug or _slug_of(name)})

    async def add(tx: "Tx") -> "Registered":
        return await register(tx, ADMIN, command)

    registered = EVENTS.transact_ready(add)
    organizer, key = registered.organizer, registered.api_key
    address = served_address.served_address(EVENTS.configured(), USUAL_PORT)
    typer.echo(f"Organizer {organizer.id}, {organizer.name}: {address}{organizer.public_path}")
    typer.echo(f"{organizer.email} signs in at {address}/sign-in, and presses “It is mine: keep it”.")
    typer.echo("Mails about its events wait until then.")
    typer.echo(f"Key {key.id}. It is not shown again.")
    typer.echo(key.key)


def _slug_of(name: str) -> str:
    """A slug for a name: its letters without accents, its digits, and a dash for all else."""
    import re
    import unicodedata

    letters = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    return re.sub("[^a-z0-9]+", "-", letters).strip("-")[:100]


@organizers.command("list")
def list_organizers() -> None:
    """List the organizers, oldest first.

    A line each, with tabs between: id, slug, e-mail address, name.
    """
    from holdfast.events.organizers import operations
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.caller import ADMIN
    from holdfast.kit.postgres.pagination import OffsetPage

    async def pages(tx: "Tx") -> "Sequence[User]":
        users: list[User] = []
        while True:
            page = await operations.list(tx, ADMIN, OffsetPage(limit=500, offset=len(users)))
            users += page.data
            if not page.pagination.has_more:
                return users

    users, location = EVENTS.transact_existing(pages)
    for user in users:
        typer.echo(tab_line(user.id, user.slug, user.email, user.name))
    typer.echo(f"Looked in {location}.", err=True)


def console_link(
    slug: Slug,
    base_url: Annotated[str, typer.Option(help="Another address of the service than the one where it is served.")] = "",
) -> None:
    """Print a link to the console of an organizer.

    It signs in the owner of the organizer's e-mail address, once, within 15 minutes, and proves that address.
    """
    from holdfast.accounts.signin import links
    from holdfast.events.organizers import operations
    from holdfast.events.resources import build
    from holdfast.events.service import EVENTS
    from holdfast.kit.process import served_address

    id, _ = EVENTS.transact_existing(lambda tx: operations.console_link(tx, slug))
    settings = EVENTS.configured()
    served = base_url.rstrip("/") or served_address.served_address(settings, USUAL_PORT)
    typer.echo(links.link_url(build(settings).secret, served, id))


@organizers.command()
def link(
    slug: Slug,
    subject: Subject,
    move: Annotated[bool, typer.Option("--move", help="Take it from the organizer it is linked to.")] = False,
) -> None:
    """Let access tokens act for an organizer.

    They are those of a subject of the authorization server (OAUTH_ISSUER). A link is needed for tokens
    without a verified e-mail address, with another one than the organizer's, or of a second subject.
    """
    from holdfast.events.oauth import operations
    from holdfast.events.oauth.model import LinkSubject
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.command import check

    command = check(LinkSubject, {"slug": slug, "subject": subject, "move": move})
    issuer = _issuer()
    organizer = EVENTS.transact_ready(lambda tx: operations.link(tx, issuer, command))
    typer.echo(f"{command.subject} of {issuer} acts for {organizer.slug}, organizer {organizer.id}.")


@organizers.command()
def unlink(subject: Subject) -> None:
    """End the link between access tokens and their organizer.

    They are those of a subject of the authorization server (OAUTH_ISSUER), and end at once. Its address does not link
    it again; only `link` does.
    """
    from holdfast.events.oauth import operations
    from holdfast.events.oauth.model import UnlinkSubject
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.command import check

    command = check(UnlinkSubject, {"subject": subject})
    issuer = _issuer()
    organizer = EVENTS.transact_ready(lambda tx: operations.unlink(tx, issuer, command))
    typer.echo(f"{command.subject} of {issuer} no longer acts for {organizer.slug}.")


@organizers.command()
def subjects(slug: Slug) -> None:
    """List who acts for an organizer by access tokens.

    A line each, with tabs between: issuer, subject, the address that made the link (or - where an operator did),
    and since when.
    """
    from holdfast.events.oauth import operations
    from holdfast.events.oauth.model import ListSubjects
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.command import check

    command = check(ListSubjects, {"slug": slug})
    rows, location = EVENTS.transact_existing(lambda tx: operations.list_subjects(tx, command))
    for row in rows:
        typer.echo(tab_line(row.issuer, row.subject, row.email, iso_time(row.since)))
    typer.echo(f"Looked in {location}.", err=True)


def _issuer() -> str:
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.problems import CannotStart

    issuer = EVENTS.configured().oauth_issuer
    if not issuer:
        raise CannotStart("Set OAUTH_ISSUER to the authorization server that the subject is of.")
    return issuer
