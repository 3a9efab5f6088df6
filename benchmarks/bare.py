"""The floor: a bare Starlette application with the same group commit, which stores what it is sent unchecked."""

import contextlib
import os
import socket
from collections.abc import AsyncGenerator, Sequence

import msgspec
import uvicorn
from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from holdfast.kit.postgres.group_commit import Batcher
from tests.helpers.any_bound import ANY_BOUND

pool = AsyncConnectionPool(os.environ["EVENTS_DATABASE_URL"], open=False, kwargs={"autocommit": True})


async def store(bodies: Sequence[dict[str, dict[str, str]]]) -> Sequence[bool]:
    async with pool.connection() as connection, connection.transaction():
        await connection.execute(
            "insert into bare_inbox (event_id, email) select * from unnest(%s::bigint[], %s::text[])",
            [[body["registration"]["event_id"] for body in bodies], [body["registration"]["email"] for body in bodies]],
        )
    return [True] * len(bodies)


inbox = Batcher(ANY_BOUND, "bare", store)


async def accept(request: Request) -> JSONResponse:
    await inbox.submit(msgspec.json.decode(await request.body()))
    return JSONResponse({"status": "accepted", "message": "stored", "next": {"url": "/nowhere"}}, 202)


async def poll(request: Request) -> JSONResponse:
    return JSONResponse({"data": {"id": request.path_params["id"], "status": "registered"}})


@contextlib.asynccontextmanager
async def lifespan(_: Starlette) -> AsyncGenerator[None]:
    async with pool:
        async with pool.connection() as connection:
            await connection.execute(
                "create table if not exists bare_inbox (id bigserial primary key, event_id bigint, email text,"
                " received_at timestamptz default clock_timestamp())"
            )
        yield


app = Starlette(routes=[Route("/bare", accept, methods=["POST"]), Route("/bare/{id}/{user}", poll)], lifespan=lifespan)

if __name__ == "__main__":
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(2048)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False)).run([listener])
