"""Two processes are killed while a person approves what an agent asks for, with many clicks: each is done once."""

import asyncio
import contextlib
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psycopg

from holdfast.accounts.agents.limits import SetLimit
from holdfast.events.keys import operations as keys
from holdfast.events.service import EVENTS
from holdfast.kit.contract.caller import system
from holdfast.kit.security.http_client import HttpClient
from tests.helpers.events_service import event_fields, queue_fields, unlimited
from tests.helpers.processes import Process, kill_in_turn, running_processes
from tests.helpers.serving import PLAIN

REQUESTS = 10
CLICKS = 3
PASSWORD = "correct horse battery"


def field(page: httpx2.Response, name: str) -> str:
    match = re.search(f'name="{name}" value="([^"]*)"', page.text)
    assert match, page.text
    return match[1]


class ApprovingOrganizer:
    """An organizer at a browser, who goes to another process when one is killed."""

    def __init__(self, http: HttpClient, processes: Sequence[Process], session: str) -> None:
        self._http = http
        self._processes = processes
        self._session = session

    async def send(self, number: int, path: str, form: Any = None) -> httpx2.Response:
        """The answer to a page or a form. A form that got no answer is sent again."""
        for process in itertools.islice(itertools.cycle(self._processes), number % 2, None):
            headers = {"Cookie": f"session-{urlsplit(process.url).port}={self._session}"}
            with contextlib.suppress(httpx2.TransportError):
                url = process.url + path
                answer = await (
                    self._http.post(url, data=form, headers=headers) if form else self._http.get(url, headers=headers)
                )
                if answer.status_code != 503:
                    return answer
        raise AssertionError("it never ends")

    async def approve(self, number: int, id: int) -> list[int]:
        """Click on Approve several times at once. Returns the statuses of the answers."""
        path = f"/console/agents/requests/{id}"
        page = await self.send(number, path)
        form = {"token": field(page, "token"), "seen": field(page, "seen"), "do": "approve"}
        return [
            (await answering).status_code
            for answering in [asyncio.ensure_future(self.send(number + click, path, form)) for click in range(CLICKS)]
        ]


async def test_an_approved_request_is_done_exactly_once(database_url: str, tmp_path: Path) -> None:
    database = EVENTS.database(unlimited(database_url, tmp_path))
    await database.open()
    with running_processes(database_url, tmp_path, 2) as processes:
        async with HttpClient(verify=PLAIN, timeout=30) as http:
            first = processes[0].url
            body = {"name": "Ada Events", "email": "ada@example.com", "slug": "ada-events", "password": PASSWORD}
            made = (await http.post(f"{first}/api/organizers/register", json={"organizer": body})).json()["data"]
            organizer_id, key = made["organizer"]["id"], made["api_key"]
            command = SetLimit(key_id=key["id"], asks_first=True)
            await database.transact(lambda tx: keys.KEY_LIMITS.store_limit(tx, system(organizer_id), command))
            await database.transact(lambda tx: tx.run("update users set proved_at = now()"))
            form = {"email": "ada@example.com", "password": PASSWORD}
            form["token"] = field(await http.get(f"{first}/sign-in"), "token")
            session = (await http.post(f"{first}/sign-in", data=form)).headers["set-cookie"].split("=", 1)[1]
            person = ApprovingOrganizer(http, processes, session.partition(";")[0])
            for process in processes:  # it may still have the key without the switch in its cache
                process.kill()
                process.start()
            ids: list[int] = []
            for number in range(REQUESTS):
                path, body = [
                    ("/api/events", {"event": event_fields(title=f"Night {number}")}),
                    ("/api/queues", {"queue_event": queue_fields(title=f"Room {number}")}),
                ][number % 2]
                refusal = await http.post(processes[0].url + path, json=body, headers={"X-API-Key": key["key"]})
                assert refusal.json()["code"] == "approval_required", refusal.text
                ids.append(refusal.json()["request_id"])

            async with kill_in_turn(processes) as kills:
                statuses = await asyncio.gather(*(person.approve(number, id) for number, id in enumerate(ids)))
    await database.close()

    assert {status for clicks in statuses for status in clicks} <= {303, 409}
    with psycopg.connect(database_url) as connection:
        titles = [title for (title,) in connection.execute("select title from events order by id").fetchall()]
        rooms = [title for (title,) in connection.execute("select title from queues order by id").fetchall()]
        ended = connection.execute("select status, count(*) from agent_requests group by status").fetchall()
    assert sorted(titles) == sorted(f"Night {number}" for number in range(0, REQUESTS, 2))
    assert sorted(rooms) == sorted(f"Room {number}" for number in range(1, REQUESTS, 2))
    assert ended == [("done", REQUESTS)]
    assert kills
