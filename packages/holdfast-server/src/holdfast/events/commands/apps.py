"""The commands `holdfast events app`. Each does its own imports, so that `--help` stays fast."""

from typing import TYPE_CHECKING, Annotated

import typer

from holdfast.events.commands.organizers import Slug

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.events.oauth_server.model import Connection
    from holdfast.events.resources import Tx

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
