"""The commands `holdfast events key`. Each command does its own imports, so that `--help` stays fast."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast_verify.terminal import iso_time, tab_line

if TYPE_CHECKING:
    from holdfast.events.keys.model import ApiKey
    from holdfast.events.resources import Tx

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
