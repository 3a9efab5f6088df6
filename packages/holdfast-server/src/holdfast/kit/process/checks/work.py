"""Checks of the background work: who does it, what failed, and what waits."""

from typing import Any

from holdfast.kit.process.checks.check_list import CheckList, Fault, duration, overdue
from holdfast.kit.process.checks.inspection import Inspection

CHECKS = CheckList()


@CHECKS.point("machines")
async def check_machines(inspection: Inspection[Any]) -> None:
    """Whether several machines keep for themselves what they must share."""
    if inspection.process_count is None:
        inspection.skipped("the database cannot be reached")
    if inspection.machine_count > 1:
        for description in inspection.settings.per_machine_state():
            problem, _, remedy = description.partition(": ")
            inspection.warning(
                f"{inspection.machine_count} machines run the service, and {problem}.",
                f"{remedy[:1].upper()}{remedy[1:]}.",
            )
    inspection.ok("Nothing is kept on one machine that others need.")


@CHECKS.point("leaders")
async def check_leaders(inspection: Inspection[Any]) -> None:
    leaders = await inspection.database.tuples(
        """
        select application_name, pid, host(client_addr),
               greatest(0, extract(epoch from clock_timestamp() - coalesce(state_change, clock_timestamp())))::float8
          from pg_stat_activity where datname = current_database() and application_name like %(name)s
         order by backend_start
        """,
        {"name": f"holdfast {inspection.name} leaders %"},
    )
    if not inspection.process_count:
        inspection.skipped("no process of the service runs")
        return
    if not leaders:
        inspection.wrong(
            "Processes run, and none of them does the background work.",
            f"Start one: holdfast {inspection.name} worker. Or serve without --no-background.",
        )
    for _, pid, address, idle_seconds in leaders:
        if idle_seconds > inspection.limits.max_idle_seconds:
            inspection.wrong(
                f"A process that does background work (from {address or 'this machine'}) has done nothing for "
                f"{duration(idle_seconds)}.",
                f"End that process and start it again. Its session in PostgreSQL has the number {pid}.",
            )
    if len({version for version, *_ in leaders}) > 1:
        inspection.warning(
            "Processes of several versions run.",
            "After an upgrade, restart the processes that still have the old version.",
        )
    processes = f"{len(leaders)} processes do" if len(leaders) > 1 else "1 process does"
    inspection.ok(f"{processes} the background work.")


CHECKS.query(
    "jobs",
    """
    select (select count(*) from procrastinate_jobs where status = 'failed') as failed,
           (select task_name from procrastinate_jobs where status = 'failed' order by id desc limit 1) as task,
           (select clock_timestamp() - min(coalesce(scheduled_at, at)) from procrastinate_jobs
              left join lateral (select min(at) as at from procrastinate_events
                                  where job_id = procrastinate_jobs.id) as first_event on true
             where status = 'todo') as age
    """,
    Fault(
        "failed > 0",
        "{failed:1 job has|jobs have} failed for good, last: {task}.",
        "See them with: holdfast {service} jobs; its log says why. Try one again with: "
        "holdfast {service} jobs --retry ID",
    ),
    *overdue("A job waits"),
    ok="No job has failed for good, and none waits for long.",
)

CHECKS.query(
    "webhook endpoints",
    """
    select count(*) filter (where status <> 'paused') as endpoints,
           count(*) filter (where status <> 'paused' and failing_since is not null) as failing,
           clock_timestamp() - min(greatest(next_due_at, leased_until)) filter (where status = 'active') as age
      from webhook_endpoints
    """,
    Fault(
        "failing >= 3 and failing = endpoints",
        "All {failing} endpoints to which webhooks are sent fail.",
        "Let the service reach other hosts: look at its firewall and its DNS.",
    ),
    *overdue("A webhook for a program waits"),
    ok="Webhooks are sent. Endpoints that do not take them: {failing} of {endpoints}.",
)
