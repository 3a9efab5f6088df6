"""Release tokens of two processes that serve different addresses of one database."""

from pathlib import Path

from holdfast.kit.security.http_client import HttpClient
from tests.helpers.events_service import eventually
from tests.helpers.processes import Process, organizer_at, running_processes


async def release_visitor(process: Process) -> tuple[str, str]:
    """The key of an organizer, and the release token of a visitor of its queue."""
    async with organizer_at(process.url) as ada:
        path = f"/api/queues/{(await ada.create_queue())['id']}"
        await ada.post(f"{path}/join", {"visitor_id": "ann"})

        async def is_released() -> bool:
            return "token" in (await ada.get(f"{path}/status/ann")).json()

        await eventually(is_released)
        return ada.key or "", (await ada.get(f"{path}/status/ann")).json()["token"]


async def verification_status(process: Process, key: str, token: str) -> int:
    async with HttpClient(base_url=process.url, timeout=30, headers={"X-API-Key": key}) as http:
        return (await http.post("/api/queues/verify_token", json={"token": token})).status_code


async def test_processes_without_a_base_address_accept_each_others_tokens(database_url: str, tmp_path: Path) -> None:
    with running_processes(database_url, tmp_path, 2) as (one, other):
        key, token = await release_visitor(one)

        assert await verification_status(one, key, token) == 200
        assert await verification_status(other, key, token) == 200


async def test_workers_accept_tokens_of_a_process_at_another_port(database_url: str, tmp_path: Path) -> None:
    with (
        running_processes(database_url, tmp_path, 1) as (one,),
        running_processes(database_url, tmp_path, 1, "--workers", "2") as (many,),
    ):
        key, token = await release_visitor(one)

        assert await verification_status(many, key, token) == 200


async def test_a_named_base_address_accepts_only_tokens_that_name_it(database_url: str, tmp_path: Path) -> None:
    with (
        running_processes(database_url, tmp_path, 1) as (unnamed,),
        running_processes(database_url, tmp_path, 1, base_url="http://events.example") as (named,),
    ):
        key, token = await release_visitor(unnamed)

        assert await verification_status(named, key, token) == 401
