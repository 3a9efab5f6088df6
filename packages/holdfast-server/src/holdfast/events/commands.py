"""`holdfast events …`: the commands of the events service alone. Each imports only what it needs."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast_verify.terminal import iso_time, tab_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.events.keys.model import ApiKey
    from holdfast.events.oauth_server.model import Connection
    from holdfast.events.payments.reconciliation import ReconciliationReport
    from holdfast.events.people.model import AccountSelector
    from holdfast.events.resources import Steps, Tx
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
    from holdfast.events.organizers.model import RegisteredOrganizer, RegisterOrganizer
    from holdfast.events.organizers.operations import register
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.caller import ADMIN
    from holdfast.kit.contract.command import check
    from holdfast.kit.process import served_address

    command = check(RegisterOrganizer, {"name": name, "email": email, "slug": slug or _slug_of(name)})

    async def add(tx: "Tx") -> "RegisteredOrganizer":
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


apps = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Apps that act for organizers.")


@apps.command("list")
def list_apps(slug: Slug) -> None:
    """List the apps that an organizer lets act for it.

    A line each, with tabs between: id, what it calls itself (or -), its scopes, since when, and when it last got
    tokens.
    """
    from holdfast.events.oauth_server import grants
    from holdfast.events.oauth_server.model import ListConnections
    from holdfast.events.organizers.operations import find
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.caller import system

    async def list_apps(tx: "Tx") -> "Sequence[Connection]":
        return await grants.list_connections(tx, system(await find(tx, slug)), ListConnections())

    app_list, location = EVENTS.transact_existing(list_apps)
    for app in app_list:
        times = (f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in (app.since, app.used_at))
        typer.echo("\t".join([app.client_id, app.name or "-", " ".join(app.scopes), *times]))
    typer.echo(f"Looked in {location}.", err=True)


@apps.command()
def disconnect(
    slug: Slug, id: Annotated[str, typer.Argument(metavar="ID", help="Id of the app, as `list` shows it.")]
) -> None:
    """Disconnect an app from an organizer: its tokens end at once. Keys that it has made stay."""
    from holdfast.events.oauth_server import grants
    from holdfast.events.oauth_server.model import Disconnect
    from holdfast.events.organizers.operations import find
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.caller import system
    from holdfast.kit.contract.command import check

    command = check(Disconnect, {"client_id": id})

    async def end(tx: "Tx") -> None:
        await grants.disconnect(tx, system(await find(tx, slug)), command)

    EVENTS.transact_ready(end)
    typer.echo(f"{id} acts for {slug} no more.")


keys = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="API keys of the events service.")


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Option(help="What the key is for.")],
    admin: Annotated[bool, typer.Option("--admin", help="A key that may do everything.")] = False,
    organizer: Annotated[
        str | None, typer.Option(metavar="SLUG", help="Slug, or id, of the organizer the key acts for.")
    ] = None,
) -> None:
    """Make an API key and print it, once, alone on the last line."""
    if admin == (organizer is not None):
        raise typer.BadParameter("Say either --admin or --organizer SLUG.")

    from holdfast.events.keys.model import CreateKey
    from holdfast.events.keys.operations import create, insert_key
    from holdfast.events.organizers.operations import find
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.caller import ADMIN
    from holdfast.kit.contract.command import check

    async def make(tx: "Tx") -> "ApiKey":
        if organizer is None:
            return await insert_key(tx, None, check(CreateKey, {"name": name}).name)
        is_id = organizer.isascii() and organizer.isdecimal() and len(organizer) < 19
        id = int(organizer) if is_id else await find(tx, organizer)
        return await create(tx, ADMIN, check(CreateKey, {"name": name, "user_id": id}))

    key = EVENTS.transact_ready(make)
    typer.echo(f"Key {key.id}, {name}. It is not shown again.")
    typer.echo(key.key)


@keys.command("list")
def list_keys() -> None:
    """List the active API keys.

    A line each, with tabs between: id, id of its organizer (or admin), the beginning of the key, since when, name.
    """
    from holdfast.events.keys.model import ListKeys
    from holdfast.events.keys.operations import list
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.caller import ADMIN

    active, location = EVENTS.transact_existing(lambda tx: list(tx, ADMIN, ListKeys()))
    for key in active:
        owner = "admin" if key.user_id is None else str(key.user_id)
        typer.echo(tab_line(key.id, owner, key.key, iso_time(key.inserted_at), key.name))
    typer.echo(f"Looked in {location}.", err=True)


@keys.command("revoke")
def revoke_key(
    id: Annotated[int, typer.Argument(metavar="ID", help="Id of the key, as `list` shows it.")],
) -> None:
    """End an API key, at once and for good."""
    from holdfast.events.keys.model import RevokeKey
    from holdfast.events.keys.operations import revoke
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.caller import ADMIN
    from holdfast.kit.contract.command import check

    command = check(RevokeKey, {"id": id})
    _, location = EVENTS.transact_existing(lambda tx: revoke(tx, ADMIN, command))
    typer.echo(f"Key {id} is revoked.")
    typer.echo(f"Looked in {location}.", err=True)


people = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="One person's data in the events service.")


Address = Annotated[
    str, typer.Argument(metavar="ADDRESS", help="The person's e-mail address, or the number of the account.")
]


@people.command("export")
def export_person(address: Address) -> None:
    """Print what is stored about a person.

    The person is not an organizer. It is printed as JSON.
    """
    import json

    import msgspec

    from holdfast.events.people import operations
    from holdfast.events.service import EVENTS

    exported, location = EVENTS.transact_existing(lambda tx: operations.export(tx, _person(address)))
    text = msgspec.json.format(msgspec.json.encode(exported), indent=2).decode()
    # Escaped like this it is the same JSON, and acts on no terminal.
    typer.echo("".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text))
    typer.echo(f"Looked in {location}.", err=True)


@people.command("erase")
def erase_person(
    address: Address,
    yes: Annotated[bool, typer.Option("--yes", help="Do it. Without this, only say what would happen.")] = False,
) -> None:
    """Erase what is stored about a person.

    It erases the address, the names and the mails of a person who is not an organizer. Registrations for events to come
    are cancelled, and the next in line move up. The others are kept without a person. Without --yes, say what would
    happen and change nothing.
    """
    from holdfast.events.ownership import erase
    from holdfast.events.people.operations import preview
    from holdfast.events.service import EVENTS

    person = _person(address)
    erasure, location = EVENTS.transact_existing(lambda tx: erase(tx, person) if yes else preview(tx, person))
    cancelled, are_retained, mails = (
        ("were cancelled", "are kept", "were deleted")
        if yes
        else ("would be cancelled", "would be kept", "would be deleted")
    )
    typer.echo(f"Account: {erasure.account_id or 'none any more'}")
    typer.echo(f"Registrations for events to come that {cancelled}: {len(erasure.cancelled)}")
    for row in erasure.cancelled:
        typer.echo("  " + tab_line(row.event_id, row.title, iso_time(row.datetime), row.status, row.amount_paid))
    typer.echo(f"Other registrations that {are_retained} without address and name: {erasure.remaining}")
    if erasure.organizer:
        ends = "ended" if yes else "would end"
        typer.echo(f"Organizer that was registered with the address, never confirmed, and {ends}: {erasure.organizer}")
    typer.echo(f"Mails that {mails}: {erasure.mails}")
    typer.echo("Erased. A backup still has the data." if yes else "Nothing was changed. Say --yes to do it.")
    typer.echo(f"Looked in {location}.", err=True)


def _person(address: str) -> "AccountSelector":
    from holdfast.accounts.addresses import canonical
    from holdfast.events.people.model import AccountSelector

    return (
        AccountSelector(id=int(address))
        if address.isascii() and address.isdecimal() and len(address) < 19
        else AccountSelector(email=canonical(address))
    )


payments = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Payments of the events service.")


@payments.callback()
def group_of_payments() -> None:
    """Payments of the events service."""


@payments.command()
def reconcile(
    days: Annotated[int, typer.Option(min=1, max=365, help="How many days back to compare.")] = 2,
) -> None:
    """Compare our payments with the processor's.

    Those are in the books of the payment processor.

    A line for each that differs, with tabs between: what differs, id at the processor, id here (or -), amount here,
    amount there, currency, what it means. Amounts are in minor units. Ends with 1 if something differs.
    """
    from holdfast.events.payments import reconciliation
    from holdfast.events.processor.processor import ProcessorRefusal, ProcessorUnreachable
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.problems import CannotStart

    async def compare(steps: "Steps") -> "ReconciliationReport":
        if steps.resources.processor is None:
            raise CannotStart("There is no payment processor to compare with. Set STRIPE_SECRET_KEY.")
        try:
            return await reconciliation.reconcile(steps, days)
        except (ProcessorRefusal, ProcessorUnreachable) as error:
            raise CannotStart(f"The payment processor did not answer: {error}") from error

    report, location = EVENTS.run_steps(compare)
    for row in report.differences:
        fields = (row.kind, row.intent_id, row.payment_id, row.ours, row.theirs, row.currency, row.meaning)
        typer.echo("\t".join("-" if field is None else str(field) for field in fields))
    typer.echo(
        f"Compared {report.compared} payments of the processor since {report.since:%Y-%m-%dT%H:%M:%SZ} with those in "
        f"{location}: {len(report.differences)} differ.",
        err=True,
    )
    if report.differences:
        raise typer.Exit(1)


def draw(
    id: Annotated[int, typer.Argument(metavar="ID", min=1, help="Id of the waiting room, or of the event.")],
    round: Annotated[int, typer.Option(metavar="ROUND", help="The round that its page names.")],
    signature: Annotated[str, typer.Option(metavar="HEX", help="The signature of the round, 96 hexadecimal digits.")],
    event: Annotated[bool, typer.Option("--event", help="The id is that of an event.")] = False,
) -> None:
    """Draw a waiting room or an event with a round entered by hand.

    For a service without internet. The list is frozen before. The public can look the round up at
    https://api.drand.sh/52db9ba70e0cc0f6eaf7803dd07447a1f5477735fd3f661792ba94600c84e971/public/ROUND. The signature is
    verified here, so it does not matter who carried it in.
    """
    from holdfast.events.draws import drawing
    from holdfast.events.queues.places import QUEUE_DRAWS
    from holdfast.events.seats.drawn import EVENT_DRAWS
    from holdfast.events.service import EVENTS
    from holdfast.kit.contract.problems import CannotStart
    from holdfast_verify.formats.beacon import InvalidRound

    subject = EVENT_DRAWS if event else QUEUE_DRAWS

    async def work(steps: "Steps") -> str:
        try:
            decoded = bytes.fromhex(signature)
        except ValueError as error:
            raise CannotStart("The signature is not made of hexadecimal digits.") from error
        try:
            return await steps.transact(lambda tx: drawing.draw(tx, subject, id, round, decoded))
        except (drawing.DrawRefusal, InvalidRound) as error:
            raise CannotStart(str(error)) from error

    result, location = EVENTS.run_steps(work)
    name = f"{subject.noun} {id}"
    typer.echo(
        {
            "drawn": f"{name.capitalize()} is drawn. People get their turns now.",
            "void": f"The draw of {name} is void: its list was not in the sealed log before the round.",
            "busy": f"{name.capitalize()} is being drawn by another process.",
        }[result]
    )
    typer.echo(f"Looked in {location}.", err=True)
