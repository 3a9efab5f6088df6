"""Checks of the background work: who does it, what failed, and what waits."""

from typing import Any, LiteralString

from holdfast.kit.postgres.database import Reader
from holdfast.kit.process.checks.inspection import Finding, Findings, Inspection, duration, ok, skipped, warning, wrong

MAX_HELD_DAYS = 7


def overdue(inspection: Inspection[Any], name: str, seconds: float | None) -> Findings:
    """The finding on work whose oldest row has been due for so many seconds. None or less than 0: none is due.

    name    the work, at the beginning of a sentence
    """
    if not seconds or seconds <= inspection.limits.max_overdue_seconds:
        return []
    message = f"{name} for {duration(seconds)}."
    if not inspection.process_count:
        return [warning(f"{message} No process of the service runs.", f"Start one: holdfast {inspection.name} serve")]
    return [
        wrong(
            message,
            f"Look in the log of the processes for the reason. If they do no background work, start: "
            f"holdfast {inspection.name} worker",
        )
    ]


async def check_leaders(inspection: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether somebody does the background work."""
    if not inspection.process_count:
        return [skipped("no process of the service runs")]
    rows = await reader.tuples(LEADERS, {"name": f"holdfast {inspection.name} leaders %"})
    worker = f"holdfast {inspection.name} worker"
    if not rows:
        return [
            wrong(
                "Processes run, and none of them does the background work.",
                f"Start one: {worker}. Or serve without --no-background.",
            )
        ]
    findings = [
        wrong(
            f"A process that does background work (from {address or 'this machine'}) has done nothing for "
            f"{duration(idle)}.",
            f"End that process and start it again. Its session in PostgreSQL has the number {pid}.",
        )
        for _, pid, address, idle in rows
        if idle > inspection.limits.max_idle_seconds
    ]
    if len({version for version, *_ in rows}) > 1:
        findings.append(
            warning(
                "Processes of several versions run.",
                "After an upgrade, restart the processes that still have the old version.",
            )
        )
    return findings or [
        ok(f"{len(rows)} processes do the background work." if len(rows) > 1 else "1 process does the background work.")
    ]


LEADERS: LiteralString = """
    select application_name, pid, host(client_addr),
           greatest(0, extract(epoch from clock_timestamp() - coalesce(state_change, clock_timestamp())))::float8
      from pg_stat_activity where datname = current_database() and application_name like %(name)s
     order by backend_start
"""


async def check_jobs(inspection: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether jobs failed for good, or wait for long."""
    failed, task, seconds = (
        await reader.tuples(
            """
            select (select count(*) from procrastinate_jobs where status = 'failed'),
                   (select task_name from procrastinate_jobs where status = 'failed' order by id desc limit 1),
                   (select extract(epoch from clock_timestamp() - min(coalesce(scheduled_at, at)))::float8
                      from procrastinate_jobs
                      left join lateral (select min(at) as at from procrastinate_events
                                          where job_id = procrastinate_jobs.id) as stored on true
                     where status = 'todo')
            """
        )
    )[0]
    findings = list[Finding]()
    if failed:
        count = "1 job has" if failed == 1 else f"{failed} jobs have"
        findings.append(
            wrong(
                f"{count} failed for good, last: {task}.",
                f"See them with: holdfast {inspection.name} jobs; its log says why. "
                f"Try one again with: holdfast {inspection.name} jobs --retry ID",
            )
        )
    findings += overdue(inspection, "A job waits", seconds)
    return findings or [ok("No job has failed for good, and none waits for long.")]


async def check_outbox(inspection: Inspection[Any], reader: Reader[None]) -> Findings:
    """Whether mails wait for long, were refused, or are held for long."""
    waiting, error, failed, failure, held = (await reader.tuples(MAILS, {"held_days": MAX_HELD_DAYS}))[0]
    findings = list[Finding]()
    if waiting and waiting > inspection.limits.max_mail_seconds:
        findings.append(
            wrong(
                f"A mail has waited for {duration(waiting)}" + (f": {error}." if error else "."),
                f"See all with: holdfast {inspection.name} mail list. Correct SMTP_HOST and its other settings; if "
                f"nobody sends, start: holdfast {inspection.name} worker",
            )
        )
    if failed:
        count = "1 mail was" if failed == 1 else f"{failed} mails were"
        findings.append(
            warning(
                f"{count} refused within 7 days, last: {failure}.",
                f"See them with: holdfast {inspection.name} mail list. Try one again with: "
                f"holdfast {inspection.name} mail retry ID",
            )
        )
    if held:
        findings.append(
            warning(
                f"{held} mails have been held for more than {MAX_HELD_DAYS} days."
                if held > 1
                else f"1 mail has been held for more than {MAX_HELD_DAYS} days.",
                "They wait until the organizer proves its address: holdfast events mail list names them.",
            )
        )
    return findings or [ok("No mail waits for long or was refused.")]


MAILS: LiteralString = """
    select (select extract(epoch from clock_timestamp() - min(coalesce(released_at, inserted_at)))::float8
              from mails where ended_at is null and hold is null),
           (select error from mails where ended_at is null and hold is null
             order by coalesce(released_at, inserted_at) limit 1),
           (select count(*) from mails where outcome = 'failed' and ended_at > now() - interval '7 days'),
           (select error from mails where outcome = 'failed' order by ended_at desc limit 1),
           (select count(*) from mails where ended_at is null and hold is not null
                                         and inserted_at < now() - make_interval(days => %(held_days)s))
"""


async def check_machines(inspection: Inspection[Any]) -> Findings:
    """Whether several machines keep for themselves what they must share."""
    if inspection.process_count is None:
        return [skipped("the database cannot be reached")]
    unshared = inspection.settings.per_machine_state()
    if inspection.machine_count > 1 and unshared:
        parts = [description.partition(": ") for description in unshared]
        return [
            warning(f"{inspection.machine_count} machines run the service, and {what}.", f"{how[:1].upper()}{how[1:]}.")
            for what, _, how in parts
        ]
    return [ok("Nothing is kept on one machine that others need.")]
