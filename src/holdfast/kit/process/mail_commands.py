"""The commands `holdfast … mail` of each service, by which operators handle mails that were not sent."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.kit.process.script_output import iso_time, tab_line

if TYPE_CHECKING:
    from holdfast.kit.process.service_process import ServiceProcess


def mail_commands(product: "Callable[[], ServiceProcess[Any, Any]]", title: str) -> typer.Typer:
    """The mail commands of one service. They import their dependencies only when they run."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=f"Mails of {title}.")

    @group.command("list")
    def list_mails() -> None:
        """List the mails that failed, newest first, those that wait, and those that are held; at most 100 of each.

        A line each, with tabs between: id, failed, waiting or held, kind, address, attempts, since when, due when, and
        what the mail server said last.
        """
        from holdfast.kit.mail import outbox

        mails, place = product().look(outbox.unsent_mails)
        for mail in mails:
            due = None if mail.state == "failed" else iso_time(mail.due_at)
            since = iso_time(mail.inserted_at)
            typer.echo(tab_line(mail.id, mail.state, mail.kind, mail.recipient, mail.attempts, since, due, mail.error))
        typer.echo(f"Looked in {place}.", err=True)

    @group.command("retry")
    def retry_mail(
        id: Annotated[int, typer.Argument(metavar="ID", help="Id of the mail, as `list` shows it.")],
    ) -> None:
        """Try a mail again at once that failed, or that the mail server put off."""
        from holdfast.kit.mail import outbox

        product().look(lambda tx: outbox.retry_mail(tx, id))
        typer.echo(f"Mail {id} is tried again.")

    _ = list_mails, retry_mail
    return group
