"""Receivers that mean harm, or are broken, get no more than an attempt, and cost others nothing."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from standardwebhooks.webhooks import Webhook

from holdfast.kit.outbound.requests import OutboundClient
from holdfast.kit.webhooks import sending
from holdfast.kit.webhooks.sending import DeliveryWork
from tests.helpers.certificates import Authority
from tests.helpers.events_service import Client, Service, eventually
from tests.helpers.outside_servers import LOCAL, Script, ok_answer, outside_server, raw_answer
from tests.helpers.webhook_programs import OrganizerProgram, OrganizerPrograms
from tests.helpers.webhook_receiver import ReceiverAnswer, fan_all_out

DEFAULT_PORT = "must use the default port, 80 for http or 443 for https"


@pytest.fixture
async def ada(service: Service) -> Client:
    return await service.organizer()


@pytest.fixture
async def program(ada: Client, programs: OrganizerPrograms) -> OrganizerProgram:
    return await programs.add(ada, types=["event.created"])


@asynccontextmanager
async def client_of(service: Service, client: OutboundClient) -> AsyncGenerator[None]:
    """While the block lasts, webhooks are sent with this client."""
    resources = service.database.resources
    service.database.resources = replace(resources, webhooks=client)
    yield
    service.database.resources = resources


async def move(service: Service, url: str) -> None:
    await service.run_sql("update webhook_endpoints set url = %(url)s", url=url)


async def result_of(service: Service, program: OrganizerProgram) -> tuple[str, int | None, str | None, str | None]:
    """What came of the only message: its status, and the status, reason and error of its last attempt."""
    [delivery] = await program.deliveries()
    answer = await program.organizer.get(f"{program.path}/messages/{delivery['message_id']}/attempts")
    attempt = answer.json()["data"][-1]
    return delivery["status"], attempt["status"], attempt["reason"], attempt["error"]


async def dripped_head(writer: asyncio.StreamWriter, _: str) -> None:
    for byte in b"HTTP/1.1 200 OK\r\nX-Long: " + b"x" * 1_000:
        writer.write(bytes([byte]))
        await writer.drain()
        await asyncio.sleep(0.05)


async def dripped_body(writer: asyncio.StreamWriter, _: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.05)


async def gigabyte(writer: asyncio.StreamWriter, _request: str) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    for _ in range(1_000):
        writer.write(b"x" * 1_000_000)
        await writer.drain()


async def speak_smtp(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speak another protocol than TLS."""
    writer.write(b"220 mail.example ESMTP\r\n")
    await writer.drain()
    writer.close()


@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        (raw_answer("200 OK\r\nContent-Length: 0\r\nConnection: close"), "delivered", None),
        (raw_answer("200 OK\r\nContent-Length: 100", b"half"), "delivered", None),
        (gigabyte, "delivered", None),
        (dripped_body, "delivered", None),
        (dripped_head, "waiting", "timeout"),
        (raw_answer("not HTTP"), "waiting", "broken"),
        (raw_answer("301 Moved Permanently\r\nLocation: http://127.0.0.1/\r\nContent-Length: 0"), "waiting", "status"),
    ],
    ids=["closes before it reads", "breaks off", "a gigabyte", "drips a body", "drips a head", "no HTTP", "redirects"],
)
async def test_a_status_is_the_answer_and_what_comes_after_it_does_not_count(
    service: Service, ada: Client, program: OrganizerProgram, script: Script, status: str, reason: str | None
) -> None:
    await ada.create_event()
    async with outside_server(script) as server:
        await move(service, server.url)
        async with client_of(service, OutboundClient(exempt=[(LOCAL, server.port)], seconds=1)):
            await program.deliver()

        assert (await result_of(service, program))[::2] == (status, reason)
        assert len(server.requests) == 1


async def test_a_redirect_is_not_followed(ada: Client, program: OrganizerProgram) -> None:
    await ada.create_event()
    program.receiver.answer = lambda _: ReceiverAnswer(307, {"Location": f"{program.receiver.url}/other"})

    await program.deliver()

    assert [message.path for message in program.receiver.received] == ["/hooks"]


async def test_a_name_that_leads_elsewhere_later_is_refused_then(
    service: Service, ada: Client, program: OrganizerProgram
) -> None:
    addresses = [LOCAL, "10.0.0.1"]

    async def look_up(host: str, port: int) -> Sequence[str]:
        return [addresses.pop(0)]

    port = program.receiver.port
    await move(service, f"http://changing.example:{port}/hooks")
    async with client_of(service, OutboundClient(exempt=[(LOCAL, port)], seconds=1, look_up=look_up)):
        for _ in range(sending.MAX_CONNECTIONS):
            await ada.create_event()
        await program.deliver()
        received = len(program.receiver.received)
        await ada.create_event()
        await program.deliver()

    assert received == len(program.receiver.received) == sending.MAX_CONNECTIONS
    last = (await program.deliveries())[-1]
    answer = await ada.get(f"{program.path}/messages/{last['message_id']}/attempts")
    assert answer.json()["data"][0]["reason"] == "name"


@pytest.mark.parametrize(
    ("url", "reason", "detail"),
    [
        (
            "https://shop.example:8443/",
            "address",
            "The address must use the default port, 80 for http or 443 for https.",
        ),
        ("https://10.0.0.1/", "name", "The address names a host that has no public address."),
        ("https://localhost/", "name", "The address names a host that has no public address."),
        ("http://127.0.0.1:{closed}/", "refused", "The address refuses connections."),
        ("https://127.0.0.1:{plain}/", "tls", "The address is not answered with TLS."),
    ],
)
async def test_an_attempt_without_an_answer_says_why_and_what_to_do(
    service: Service, ada: Client, program: OrganizerProgram, url: str, reason: str, detail: str
) -> None:
    await ada.create_event()
    async with outside_server(ok_answer(b"")) as closed:
        pass
    async with await asyncio.start_server(speak_smtp, LOCAL, 0) as plain:
        port = plain.sockets[0].getsockname()[1]
        await move(service, url.format(closed=closed.port, plain=port))
        exempt = [(LOCAL, closed.port), (LOCAL, port)]
        async with client_of(service, OutboundClient(exempt=exempt, seconds=2)):
            await program.deliver()

    status, answer, attempt_reason, error = await result_of(service, program)
    assert (status, answer, attempt_reason) == ("waiting", None, reason)
    assert error
    assert error.startswith(f"{detail} ")
    assert error != f"{detail} "


async def test_a_certificate_that_is_not_trusted_is_named(
    service: Service, ada: Client, program: OrganizerProgram, tmp_path: Path
) -> None:
    await ada.create_event()
    authority = Authority(tmp_path)

    async def look_up(host: str, port: int) -> Sequence[str]:
        return [LOCAL]

    async with outside_server(ok_answer(b""), authority.issue("other.example")) as server:
        await move(service, f"https://shop.example:{server.port}/")
        trust = authority.believed()
        client = OutboundClient(exempt=[(LOCAL, server.port)], seconds=2, look_up=look_up, trust=trust)
        async with client_of(service, client):
            await program.deliver()

    _, _, reason, error = await result_of(service, program)
    assert reason == "tls"
    assert "certificate that is not trusted (Hostname mismatch" in f"{error}"


async def test_ten_thousand_endpoints_that_fail_leave_others_their_places(
    service: Service, ada: Client, program: OrganizerProgram
) -> None:
    await service.run_sql(
        "insert into webhook_endpoints (tenant_id, url, types, is_ordered, sealed, failing_since, next_due_at)"
        " select 1000 + number / 20, 'https://shop.example/', '{}', false, '', now(), now() - interval '1 hour'"
        "   from generate_series(1, 10000) as number"
    )
    await ada.create_event()
    await fan_all_out(service.database)

    rows = await DeliveryWork(service.database).lease(sending.MAX_ENDPOINTS, (), scan_all=True)

    assert program.endpoint["id"] in [row.key for row in rows]
    assert len(rows) == sending.MAX_UNRELIABLE_ENDPOINTS + 1


async def test_messages_on_their_way_are_signed_with_the_old_secret_too_when_it_is_rotated(
    ada: Client, program: OrganizerProgram
) -> None:
    for _ in range(20):
        await ada.create_event()

    _, rotated = await asyncio.gather(program.deliver(), ada.post(f"{program.path}/rotate_secret"))
    await ada.create_event()
    await program.deliver()

    assert len(program.receiver.received) == 21
    for message in program.receiver.received:
        Webhook(program.endpoint["secret"]).verify(message.body, message.headers)
    last = program.receiver.received[-1]
    Webhook(rotated.json()["data"]["secret"]).verify(last.body, last.headers)


async def test_an_endpoint_that_is_deleted_while_a_message_is_on_its_way_leaves_nothing(
    service: Service, ada: Client, program: OrganizerProgram
) -> None:
    await ada.create_event()
    program.receiver.answer = lambda _: ReceiverAnswer(-1)

    async def delete() -> None:
        await eventually(lambda: asyncio.sleep(0, bool(program.receiver.received)))
        assert (await ada.delete(program.path)).status_code == 204

    await asyncio.gather(program.deliver(), delete())

    for table in ("webhook_endpoints", "webhook_deliveries", "webhook_attempts"):
        assert await service.run_sql(f"select count(*) from {table}") == [(0,)]
