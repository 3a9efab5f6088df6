"""The commands of each service for its address, its jobs and its mails."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast_verify.terminal import iso_time, printable, tab_line

if TYPE_CHECKING:
    from holdfast.kit.process.service_process import ServiceProcess


def address_command(process: "Callable[[], ServiceProcess[Any, Any]]", usual_port: int) -> Callable[[], None]:
    """The command of one service. It imports its dependencies only when it runs."""

    def address() -> None:
        """Print the address at which the service is served.

        It is the base address in the settings, or the one that was served last from the data directory.
        """
        from holdfast.kit.process import served_address

        typer.echo(served_address.served_address(process().configured(), usual_port))

    return address


if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.kit.background.tasks import FailedJob
    from holdfast.kit.process.service_process import ServiceProcess


def jobs_command(process: "Callable[[], ServiceProcess[Any, Any]]") -> Callable[..., None]:
    """The command of one service. It imports its dependencies only when it runs."""

    def jobs(retry: Annotated[int | None, typer.Option(help="Id of a job to try again.")] = None) -> None:
        """List the failed jobs, or try one again.

        They are background jobs that failed in all of their attempts.
        """
        import asyncio

        from holdfast.kit.background import tasks
        from holdfast.kit.contract.problems import CannotStart, Problem
        from holdfast.kit.process import database_location

        settings = process().configured()
        url = process().with_existing_database(settings).database_url
        location = database_location.location_text(settings)

        async def run() -> "Sequence[FailedJob]":
            async with tasks.open_job_manager(url) as manager:
                if retry is not None:
                    await tasks.retry_job(manager, retry)
                    return ()
                return await tasks.failed_jobs(manager)

        try:
            failed = asyncio.run(run())
        except Problem as problem:
            raise CannotStart(f"{problem.message} This was looked for in {location}.") from problem
        if retry is not None:
            typer.echo(f"Job {retry} is tried again.")
            return
        for job in failed:
            typer.echo(f"{job.id}\t{job.task_name}\tafter {job.attempts} attempts\t{job.arguments}")
        if len(failed) == tasks.MAX_LISTED_JOBS:
            typer.echo(f"These are the newest {len(failed)} jobs that failed for good; there may be more.")
        else:
            typer.echo(f"{len(failed)} jobs failed for good." if failed else "No job has failed for good.")
        typer.echo(f"Looked in {location}.", err=True)

    return jobs


if TYPE_CHECKING:
    from holdfast.kit.mail.mail_lists import UnsentMail
    from holdfast.kit.process.service_process import ServiceProcess

COLUMNS = ("ID", "STATE", "KIND", "ADDRESS", "ATTEMPTS", "SINCE", "DUE", "ERROR")


def mail_commands(process: "Callable[[], ServiceProcess[Any, Any]]", title: str) -> typer.Typer:
    """The mail commands of one service. They import their dependencies only when they run."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help=f"Mails of {title}.")

    @group.command("list")
    def list_mails(
        limit: Annotated[int, typer.Option(metavar="N", min=1, help="The most mails of each status.")] = 100,
    ) -> None:
        """List the mails that were not sent.

        First those that failed, newest first; then those that wait, and those that are held.

        A line each, with tabs between: id, failed, waiting or held, kind, address, attempts, since when, due when, and
        what the mail server said last: of the mails that wait for the whole server, one says why.
        """
        from holdfast.kit.mail import mail_lists

        mails, location = process().transact_existing(partial(mail_lists.unsent_mails, limit=limit + 1))
        if mails:
            _print_mails(mails, limit, process().name)
        typer.echo(f"Looked in {location}.", err=True)

    @group.command("retry")
    def retry_mail(
        id: Annotated[int, typer.Argument(metavar="ID", help="Id of the mail, as `list` shows it.")],
    ) -> None:
        """Try a mail again at once.

        It is one that failed, or that the mail server put off.
        """
        from holdfast.kit.mail import outbox

        process().transact_existing(lambda tx: outbox.retry_mail(tx, id))
        typer.echo(f"Mail {id} is tried again.")

    @group.command("test")
    def send_test_mail(
        address: Annotated[str, typer.Argument(metavar="ADDRESS", help="The address that the mail goes to.")],
    ) -> None:
        """Send one mail, and show each step.

        It is sent at once with the present settings. The steps are the connection, its encryption, the login, the
        sender, the recipient, and the mail, with the words of the mail server. The database is not used. Exits with 1
        if a step fails.
        """
        import asyncio

        from holdfast.kit.contract.addresses import NoAddress
        from holdfast.kit.contract.problems import CannotStart
        from holdfast.kit.mail import trial
        from holdfast.kit.mail.transport import MailServerUnavailable

        settings = process().configured()
        try:
            envelope = trial.trial_mail(settings, title, address)
        except NoAddress as error:
            raise CannotStart(f"{printable(address)} is no e-mail address.") from error
        if not settings.smtp_host:
            try:
                file = asyncio.run(trial.write(settings, envelope))
            except MailServerUnavailable as error:
                raise CannotStart(f"The mail was not written: {error}.") from error
            typer.echo(f"SMTP_HOST is not set, so mails are files. This one is {file}")
            return

        async def send() -> bool:
            async for step in trial.send(settings, envelope):
                typer.echo(f"{'✗' if step.advice else '✓'} {step.text}")
                if step.advice:
                    typer.echo(f"  {step.advice}")
                    return False
            return True

        if not asyncio.run(send()):
            raise typer.Exit(1)
        typer.echo("Look whether it arrives, and in which folder: see docs/deploy/mail.md about SPF, DKIM and DMARC.")
        if not settings.base_url:
            variable = settings.variable("base_url")
            typer.echo(f"Set {variable} too: mails have links, so a worker without an address sends none.", err=True)

    _ = list_mails, retry_mail, send_test_mail
    return group


def _print_mails(mails: "Sequence[UnsentMail]", limit: int, service: str) -> None:
    """Print mails, which are in groups by their status; at most `limit` of each status."""
    typer.echo(tab_line(*COLUMNS), err=True)
    for status, group in groupby(mails, lambda mail: mail.status):
        mails_of_status = [*group]
        for mail in mails_of_status[:limit]:
            due = None if status == "failed" else iso_time(mail.due_at)
            since = iso_time(mail.inserted_at)
            typer.echo(tab_line(mail.id, status, mail.kind, mail.recipient, mail.attempts, since, due, mail.error))
        if len(mails_of_status) > limit:
            more = f"holdfast {service} mail list --limit {limit * 10}"
            typer.echo(f"Only {limit} of the mails with the status {status} are listed. To see more: {more}", err=True)
    typer.echo(f"What the mail server says at present: holdfast {service} mail test ADDRESS", err=True)
