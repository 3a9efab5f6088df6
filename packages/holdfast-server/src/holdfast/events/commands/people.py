"""The commands `holdfast events person`. Each command does its own imports, so that `--help` stays fast."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast_verify.terminal import iso_time, tab_line

if TYPE_CHECKING:
    from holdfast.events.people.model import AccountSelector

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
    done, location = EVENTS.transact_existing(lambda tx: erase(tx, person) if yes else preview(tx, person))
    cancelled, are_retained, mails = (
        ("were cancelled", "are kept", "were deleted")
        if yes
        else ("would be cancelled", "would be kept", "would be deleted")
    )
    typer.echo(f"Account: {done.account_id or 'none any more'}")
    typer.echo(f"Registrations for events to come that {cancelled}: {len(done.cancelled)}")
    for row in done.cancelled:
        typer.echo("  " + tab_line(row.event_id, row.title, iso_time(row.datetime), row.status, row.amount_paid))
    typer.echo(f"Other registrations that {are_retained} without address and name: {done.remaining}")
    if done.organizer:
        ends = "ended" if yes else "would end"
        typer.echo(f"Organizer that was registered with the address, never confirmed, and {ends}: {done.organizer}")
    typer.echo(f"Mails that {mails}: {done.mails}")
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
