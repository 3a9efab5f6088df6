"""PUT of a presigned upload: it is accepted as it was presigned or not at all, and stays private."""

import asyncio
import socket
from urllib.parse import quote

import pytest

from holdfast.events.photos import routes
from tests.helpers.events_service import Service
from tests.helpers.photos import presign, put_upload, stored_files
from tests.helpers.pictures import picture
from tests.helpers.serving import bind_port, running_already, serve_app

CONTENT = picture()


async def test_an_upload_is_stored_where_no_public_address_reaches_it(service: Service) -> None:
    ada = await service.organizer()
    presigned = await presign(ada, CONTENT)
    await put_upload(service, presigned["upload_url"], CONTENT)

    upload = presigned["key"].replace("photos/", "uploads/")
    assert stored_files(service, "uploads") == {upload}
    for address in (f"/media/{presigned['key']}", f"/media/{upload}", f"/{upload}", presigned["upload_url"]):
        assert (await service.http.get(address)).status_code in (404, 405)


@pytest.mark.parametrize("kind", ["image/png", "image/jpeg; charset=utf-8", "IMAGE/JPEG", "text/html", ""])
async def test_an_upload_of_a_different_type_than_presigned_is_refused(service: Service, kind: str) -> None:
    presigned = await presign(await service.organizer(), CONTENT)

    response = await put_upload(service, presigned["upload_url"], CONTENT, kind)

    assert (response.status_code, response.json()["code"]) == (403, "upload_refused")
    assert "Content-Type: image/jpeg" in response.json()["error"]
    assert stored_files(service, "uploads") == set()


@pytest.mark.parametrize("length", ["0", "1", "5000001", "-1", "9" * 30, "", "many"])
async def test_an_upload_of_a_different_length_than_presigned_is_refused(service: Service, length: str) -> None:
    presigned = await presign(await service.organizer(), CONTENT)

    response = await put_upload(service, presigned["upload_url"], CONTENT, **{"Content-Length": length})

    assert (response.status_code, response.json()["code"]) == (403, "upload_refused")
    assert f"Content-Length: {len(CONTENT)}" in response.json()["error"]
    assert stored_files(service, "uploads") == set()


async def test_a_signature_presigned_for_one_key_is_refused_for_another(service: Service) -> None:
    ada, ben = await service.organizer(), await service.organizer()
    hers, his = await presign(ada, CONTENT), await presign(ben, CONTENT)
    at, query = his["upload_url"].split("?")[0], hers["upload_url"].split("?")[1]

    response = await put_upload(service, f"{at}?{query}", CONTENT)

    assert (response.status_code, response.json()["code"]) == (403, "upload_refused")
    assert stored_files(service, "uploads") == set()


@pytest.mark.parametrize(
    "path",
    [
        *("../../../etc/passwd", "..%2f..%2fevents.secret", "7/%2e%2e/8/abcdefghijklmnopqrstuv.jpg", "", "7", "7/"),
        *("7/abcdefghijklmnopqrstuv.svg", "7/abcdefghijklmnopqrstuv.jpg%0a", "7/abcdefghijklmnopqrstuv.jpg%00", "//"),
        *("photos/7/abcdefghijklmnopqrstuv.jpg", "admin/abcdefghijklmnopqrstuv", "7/x.jpg", "%E2%82%AC/x.jpg"),
    ],
)
async def test_an_upload_to_an_invalid_path_is_answered_with_404(service: Service, path: str) -> None:
    response = await put_upload(
        service, f"http://events.test/uploads/{path}?type=a&length=1&expires=1&signature=a", CONTENT
    )

    assert response.status_code == 404
    assert stored_files(service, "uploads") == set()


@pytest.mark.parametrize("query", ["", "signature=", "signature=" + quote("\u20ac"), "type=image/jpeg&type=a", "a=%ff"])
async def test_an_address_that_was_never_presigned_is_refused(service: Service, query: str) -> None:
    response = await put_upload(service, f"http://events.test/uploads/7/abcdefghijklmnopqrstuv.jpg?{query}", CONTENT)

    assert response.status_code in (400, 403, 422)
    assert stored_files(service, "uploads") == set()


async def test_an_upload_address_allows_put_only(service: Service) -> None:
    presigned = await presign(await service.organizer(), CONTENT)

    for method in ("GET", "POST", "PATCH", "DELETE"):
        response = await service.http.request(method, presigned["upload_url"], content=CONTENT)
        assert response.status_code == 405
        assert response.headers["allow"] == "OPTIONS, PUT"


async def test_an_upload_from_a_page_of_another_site_is_accepted(service: Service) -> None:
    presigned = await presign(await service.organizer(), CONTENT)
    asks = {"Origin": "https://ada.example", "Access-Control-Request-Method": "PUT"}

    preflight = await service.http.options(presigned["upload_url"], headers=asks)
    response = await put_upload(service, presigned["upload_url"], CONTENT, Origin="https://ada.example")
    refusal = await put_upload(service, presigned["upload_url"], CONTENT, "image/png", Origin="https://ada.example")

    assert preflight.status_code == 204
    assert preflight.headers["access-control-allow-methods"] == "PUT"
    assert preflight.headers["access-control-allow-headers"] == "content-type"
    assert {answer.headers["access-control-allow-origin"] for answer in (preflight, response, refusal)} == {"*"}


async def send_bytes(at: socket.socket, request: bytes) -> bytes:
    """What a server answers to these bytes."""
    reader, writer = await asyncio.open_connection(*at.getsockname())
    writer.write(request)
    writer.write_eof()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_an_upload_that_is_cut_off_or_says_no_length_leaves_nothing(service: Service) -> None:
    presigned = await presign(await service.organizer(), CONTENT)
    target = presigned["upload_url"].removeprefix("http://events.test")
    head = f"PUT {target} HTTP/1.1\r\nHost: events.test\r\nConnection: close\r\nContent-Type: image/jpeg\r\n"
    port = bind_port()
    async with serve_app(running_already(service.app), port):
        cut_off = await send_bytes(port, f"{head}Content-Length: {len(CONTENT)}\r\n\r\n".encode() + CONTENT[:-1])
        chunked = await send_bytes(
            port,
            f"{head}Transfer-Encoding: chunked\r\n\r\n{len(CONTENT):x}\r\n".encode() + CONTENT + b"\r\n0\r\n\r\n",
        )

    assert b" 200 " not in cut_off
    assert chunked.startswith(b"HTTP/1.1 403 ")
    assert stored_files(service, "uploads") == set()


async def test_an_upload_that_is_cancelled_as_it_begins_leaves_nothing(service: Service) -> None:
    store = service.database.resources.photos
    for _ in range(20):
        upload = asyncio.create_task(store.write("uploads/7/abcdefghijklmnopqrstuv.jpg", CONTENT, "image/jpeg"))
        for _ in range(2):
            await asyncio.sleep(0)
        upload.cancel()
        await asyncio.gather(upload, return_exceptions=True)

        assert upload.cancelled()
        assert stored_files(service, "uploads") == set()


async def test_an_upload_that_does_not_come_to_an_end_is_given_up_on(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(routes, "UPLOAD_TIMEOUT_SECONDS", 0.05)
    presigned = await presign(await service.organizer(), CONTENT)
    target = presigned["upload_url"].removeprefix("http://events.test")
    head = f"PUT {target} HTTP/1.1\r\nHost: events.test\r\nContent-Type: image/jpeg\r\nContent-Length: {len(CONTENT)}"
    port = bind_port()
    async with serve_app(running_already(service.app), port):
        reader, writer = await asyncio.open_connection(*port.getsockname())
        writer.write(f"{head}\r\n\r\n".encode() + CONTENT[:10])
        answer = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert stored_files(service, "uploads") == set()


async def test_concurrent_uploads_to_one_address_leave_one_of_them_whole(service: Service) -> None:
    ada = await service.organizer()
    presigned = await presign(ada, CONTENT)
    others = [bytes([number]) * len(CONTENT) for number in range(8)]

    await asyncio.gather(*(put_upload(service, presigned["upload_url"], content) for content in others))

    [name] = stored_files(service, "uploads")
    assert (service.database.resources.settings.data_dir / "media" / name).read_bytes() in others
