"""The command `holdfast … jobs` of each service."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.kit.background.jobs import FailedJob
    from holdfast.kit.process.service_process import ServiceProcess


def jobs_command(product: "Callable[[], ServiceProcess[Any, Any]]") -> Callable[..., None]:
    """The command of one service. It imports its dependencies only when it runs."""

    def jobs(retry: Annotated[int | None, typer.Option(help="Id of a job to try again.")] = None) -> None:
        """List the failed jobs, or try one again.

        They are background jobs that failed in all of their attempts.
        """
        import asyncio

        from holdfast.kit.background import jobs
        from holdfast.kit.contract.problems import CannotStart, Problem
        from holdfast.kit.process import database_location

        settings = product().configured()
        url = product().existing(settings).database_url
        place = database_location.location_text(settings)

        async def run() -> "Sequence[FailedJob]":
            async with jobs.open_job_manager(url) as manager:
                if retry is not None:
                    await jobs.retry_job(manager, retry)
                    return ()
                return await jobs.failed_jobs(manager)

        try:
            failed = asyncio.run(run())
        except Problem as problem:
            raise CannotStart(f"{problem.message} This was looked for in {place}.") from problem
        if retry is not None:
            typer.echo(f"Job {retry} is tried again.")
            return
        for job in failed:
            typer.echo(f"{job.id}\t{job.task_name}\tafter {job.attempts} attempts\t{job.arguments}")
        if len(failed) == jobs.MAX_LISTED_JOBS:
            typer.echo(f"These are the newest {len(failed)} jobs that failed for good; there may be more.")
        else:
            typer.echo(f"{len(failed)} jobs failed for good." if failed else "No job has failed for good.")
        typer.echo(f"Looked in {place}.", err=True)

    return jobs
