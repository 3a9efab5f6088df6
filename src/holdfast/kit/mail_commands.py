"""The commands `holdfast … mail`: what operators can do about mails that were not sent, in each service."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.kit.lines import line, moment

if TYPE_CHECKING:
    from holdfast.kit.process import Product


def mail_commands(product: "Callable[[], Product[Any, Any]]", title: str) -> typer.Typer:
    """The commands about the mails of one service. They import what they need only when they are run."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=f"Mails of {title}.")

    @group.command("list")
    def list_mails() -> None:
        """List the mails that failed, newest first, and then those that wait; at most 100 of each.

        A line each, with tabs between: id, failed or waiting, kind, address, attempts, since when, due when, and what
        the mail server said last.
        """
        from holdfast.kit import outbox

        found, place = product().look(outbox.unsent)
        for each in found:
            due = moment(each.due_at) if each.state == "waiting" else None
            since = moment(each.inserted_at)
            typer.echo(line(each.id, each.state, each.kind, each.recipient, each.attempts, since, due, each.error))
        typer.echo(f"Looked in {place}.", err=True)

    @group.command("retry")
    def retry_mail(
        id: Annotated[int, typer.Argument(metavar="ID", help="Id of the mail, as `list` shows it.")],
    ) -> None:
        """Try a mail again at once that failed, or that the mail server put off."""
        from holdfast.kit import outbox

        product().look(lambda tx: outbox.retry(tx, id))
        typer.echo(f"Mail {id} is tried again.")

    _ = list_mails, retry_mail
    return group
