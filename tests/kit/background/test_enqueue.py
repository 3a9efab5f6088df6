"""A task is enqueued by a transaction, and done once after it has committed."""

import asyncio
from typing import Any

import pytest

from holdfast.events.resources import Steps, Tx
from holdfast.kit.background import tasks
from holdfast.kit.contract.problems import NOT_FOUND, Problem
from tests.helpers.command_line import run_holdfast
from tests.helpers.events_service import Service, eventually
from tests.kit.background.letters import POST_LETTER, Letter, run_letter_jobs


async def stored_jobs(service: Service) -> list[tuple[Any, ...]]:
    return await service.run_sql(
        "select status::text, attempts from procrastinate_jobs where task_name = 'post_letter' order by id"
    )


async def test_a_task_is_done_with_its_enqueued_arguments(service: Service) -> None:
    posted: asyncio.Queue[Letter] = asyncio.Queue()

    async def post(steps: Steps, letter: Letter) -> None:
        assert steps.resources is service.database.resources
        posted.put_nowait(letter)

    await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("ada", 2)))
    async with run_letter_jobs(service.database, post), asyncio.timeout(20):
        assert await posted.get() == Letter("ada", 2)
        await eventually(lambda: _is_empty(service))


async def test_a_transaction_that_is_rolled_back_enqueues_no_task(service: Service) -> None:
    async def want(tx: Tx) -> None:
        await tx.enqueue(POST_LETTER, Letter("ada"))
        raise NOT_FOUND()

    with pytest.raises(Problem):
        await service.database.transact(want)
    await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("ben")), is_dry_run=True)

    assert await stored_jobs(service) == []


async def test_a_task_is_stored_with_the_rows_of_its_transaction_or_not_at_all(service: Service) -> None:
    await service.run_sql("create table letters (recipient text check (recipient <> 'nobody'))")

    async def write(tx: Tx, to: str) -> None:
        await tx.enqueue(POST_LETTER, Letter(to))
        await tx.run("insert into letters values (%(to)s)", {"to": to})

    await service.database.transact(lambda tx: write(tx, "ada"))
    with pytest.raises(Exception, match="letters"):
        await service.database.transact(lambda tx: write(tx, "nobody"))

    assert await stored_jobs(service) == [("todo", 0)]
    assert await service.run_sql("select recipient from letters") == [("ada",)]


async def test_a_task_can_be_delayed(service: Service) -> None:
    await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("ada"), delay=3600))

    [(seconds,)] = await service.run_sql("select extract(epoch from scheduled_at - now())::int from procrastinate_jobs")
    assert 3500 < seconds <= 3600


async def test_a_delayed_task_is_done_when_it_is_due_without_a_poll(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "POLL_SECONDS", 3600.0)
    posted: asyncio.Queue[str] = asyncio.Queue()

    async def post(steps: Steps, letter: Letter) -> None:
        posted.put_nowait(letter.to)

    async with run_letter_jobs(service.database, post), asyncio.timeout(20):
        await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("now")))
        assert await posted.get() == "now"  # so it listens
        await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("soon"), delay=0.5))
        assert await posted.get() == "soon"


async def test_a_process_gets_jobs_over_its_one_listening_connection(service: Service) -> None:
    posted = asyncio.Event()

    async def post(steps: Steps, letter: Letter) -> None:
        posted.set()

    async with run_letter_jobs(service.database, post), asyncio.timeout(20):
        await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("ada")))
        await posted.wait()
        listening = await service.run_sql(
            """
            select application_name from pg_stat_activity
             where datname = current_database() and query ilike 'listen %%' and application_name like '%% jobs'
            """
        )

    assert listening == []


async def test_a_task_of_a_tenant_runs_inside_the_tenant(service: Service) -> None:
    service.database.tenancy = "select set_config('test.tenant', %(tenant)s, true)"
    tenants: asyncio.Queue[str] = asyncio.Queue()

    async def post(steps: Steps, letter: Letter) -> None:
        tenants.put_nowait(await steps.transact(lambda tx: tx.value("select current_setting('test.tenant')")))

    await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("ada")), 7)
    async with run_letter_jobs(service.database, post), asyncio.timeout(20):
        assert await tenants.get() == "7"


async def test_a_task_that_fails_is_tried_again_after_a_pause(service: Service) -> None:
    tried = asyncio.Event()

    async def fail(steps: Steps, letter: Letter) -> None:
        tried.set()
        raise RuntimeError("the post office is closed")

    await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("ada")))
    async with run_letter_jobs(service.database, fail), asyncio.timeout(20):
        await tried.wait()
        await eventually(lambda: service.run_sql("select from procrastinate_jobs where attempts = 1"))

    [(status, seconds)] = await service.run_sql(
        """
        select status::text, extract(epoch from scheduled_at - now()) > 0 from procrastinate_jobs
         where task_name = 'post_letter'
        """
    )
    assert (status, seconds) == ("todo", True)


async def test_a_task_that_failed_for_good_is_listed_and_can_be_tried_again(service: Service) -> None:
    async def fail(steps: Steps, letter: Letter) -> None:
        raise RuntimeError("the post office is closed")

    url = service.database.url
    id = await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("ada")))
    async with run_letter_jobs(service.database, fail, attempts=1), asyncio.timeout(20):
        await eventually(lambda: service.run_sql("select from procrastinate_jobs where status = 'failed'"))

    async with tasks.open_job_manager(url) as manager:
        [failed] = await tasks.failed_jobs(manager)
    assert (failed.id, failed.task_name) == (id, "post_letter")
    listed = await asyncio.to_thread(run_holdfast, "events", "jobs", EVENTS_DATABASE_URL=url)
    assert f"{id}\tpost_letter" in listed.stdout
    again = await asyncio.to_thread(run_holdfast, "events", "jobs", "--retry", str(id), EVENTS_DATABASE_URL=url)
    assert again.returncode == 0, again.stderr
    assert [status for status, _ in await stored_jobs(service)] == ["todo"]
    refusal = await asyncio.to_thread(run_holdfast, "events", "jobs", "--retry", str(id), EVENTS_DATABASE_URL=url)
    assert refusal.returncode == 1
    assert refusal.stderr.startswith(f"No job with the id {id} has failed. This was looked for in the database that ")


async def test_a_task_that_a_killed_process_left_behind_is_tried_again(service: Service) -> None:
    posted = asyncio.Event()

    async def post(steps: Steps, letter: Letter) -> None:
        posted.set()

    await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("ada")))
    await service.run_sql("update procrastinate_jobs set status = 'doing'")

    async with tasks.open_job_manager(service.database.url) as manager:
        assert await tasks.retry_stalled(manager, {POST_LETTER.name: 10}) == 1
    async with run_letter_jobs(service.database, post), asyncio.timeout(20):
        await posted.wait()


@pytest.mark.parametrize(("silent_seconds", "stalled"), [(5, 0), (11, 1)])
async def test_a_worker_without_a_heartbeat_for_ten_seconds_loses_its_jobs(
    service: Service, silent_seconds: int, stalled: int
) -> None:
    await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("ada")))
    await service.run_sql(
        """
        with worker as (
            insert into procrastinate_workers (last_heartbeat) values (now() - %(seconds)s * interval '1 second')
            returning id)
        update procrastinate_jobs set status = 'doing', worker_id = worker.id from worker
        """,
        seconds=silent_seconds,
    )

    async with tasks.open_job_manager(service.database.url) as manager:
        assert await tasks.retry_stalled(manager, {POST_LETTER.name: 10}) == stalled


async def test_a_worker_keeps_looking_for_stalled_jobs(service: Service) -> None:
    posted: asyncio.Queue[str] = asyncio.Queue()

    async def post(steps: Steps, letter: Letter) -> None:
        posted.put_nowait(letter.to)

    async with run_letter_jobs(service.database, post), asyncio.timeout(60):
        for name in ("ada", "ben", "cleo"):
            await service.database.transact(lambda tx, name=name: tx.enqueue(POST_LETTER, Letter(name)))
            await posted.get()
            await service.run_sql(
                """
                insert into procrastinate_jobs (queue_name, task_name, args, status)
                values ('default', 'post_letter', jsonb_build_object('tenant', null,
                        'arguments', jsonb_build_object('to', %(name)s::text, 'pages', 1)), 'doing')
                """,
                name=f"left behind by {name}",
            )
            assert await posted.get() == f"left behind by {name}"


async def test_a_task_that_kills_its_process_each_time_fails_for_good(service: Service) -> None:
    await service.database.transact(lambda tx: tx.enqueue(POST_LETTER, Letter("ada")))
    await service.run_sql("update procrastinate_jobs set status = 'doing', attempts = 9")

    async with tasks.open_job_manager(service.database.url) as manager:
        assert await tasks.retry_stalled(manager, {POST_LETTER.name: 10}) == 1

    assert [status for status, _ in await stored_jobs(service)] == ["failed"]


async def test_a_slow_task_holds_up_no_other(service: Service) -> None:
    posted: asyncio.Queue[str] = asyncio.Queue()
    forever = asyncio.Event()

    async def post(steps: Steps, letter: Letter) -> None:
        if letter.to == "slow":
            await forever.wait()
        posted.put_nowait(letter.to)

    for to in ("slow", "quick"):
        await service.database.transact(lambda tx, to=to: tx.enqueue(POST_LETTER, Letter(to)))
    async with run_letter_jobs(service.database, post), asyncio.timeout(20):
        assert await posted.get() == "quick"
        forever.set()


async def test_an_error_while_enqueueing_is_raised_in_the_transaction(service: Service) -> None:
    runs = 0

    async def conflict_once(tx: Tx) -> int:
        nonlocal runs
        runs += 1
        if runs == 1:
            await tx.run("do $$ begin raise exception 'lost a race' using errcode = '40001'; end $$")
        return await tx.enqueue(POST_LETTER, Letter("ada"))

    await service.database.transact(conflict_once)

    assert (runs, await stored_jobs(service)) == (2, [("todo", 0)])


async def _is_empty(service: Service) -> bool:
    return await stored_jobs(service) == []


async def test_a_function_with_its_owners_rights_looks_for_nothing_in_a_temporary_schema(service: Service) -> None:
    """Its caller could have put tables and functions there. Before, `enqueue_task` had the path of the user who
    migrated.
    """
    rows = await service.run_sql(
        """
        select proname, proconfig from pg_proc
         where prosecdef and pronamespace = 'public'::regnamespace
           and not coalesce(proconfig && array['search_path=pg_catalog, public, pg_temp'], false)
        """
    )

    assert rows == []
