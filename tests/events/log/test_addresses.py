"""The public addresses of a log answer its signed parts, in the formats that other programs read."""

from base64 import b64decode

from holdfast.kit.http.answers import BRIEF, IMMUTABLE
from holdfast_verify.formats.tree import parse_bundle
from tests.events.log.log_scene import open_log, read_verified_entry
from tests.helpers.events_service import Service


async def test_answers_of_a_log_have_their_type_and_are_cached_while_they_do_not_change(service: Service) -> None:
    log = await open_log(service)
    await log.arrive(300)
    await log.seal()

    for path, media_type, caching in (
        ("/checkpoint", "text/plain; charset=utf-8", BRIEF[1].decode()),
        ("/key", "text/plain; charset=utf-8", "public, max-age=300"),
        ("/proofs/7", "text/plain; charset=utf-8", BRIEF[1].decode()),
        ("/1/tile/0/000", "application/octet-stream", IMMUTABLE[1].decode()),
        ("/1/tile/entries/001.p/46", "application/octet-stream", IMMUTABLE[1].decode()),
        # After a restored backup the newest log is another one.
        ("/tile/0/000", "application/octet-stream", "public, max-age=300"),
        ("/tile/entries/001.p/46", "application/octet-stream", "public, max-age=300"),
    ):
        answer = await log.get(path)
        assert answer.status_code == 200, path
        assert answer.headers["content-type"] == media_type
        assert answer.headers["cache-control"] == caching
        assert answer.headers["access-control-allow-origin"] == "*"
        assert (await service.http.head(log.path + path)).status_code == 200
        # Bundles of entries compress to a third, hashes do not.
        plain = await service.http.get(log.path + path, headers={"Accept-Encoding": "identity"})
        assert answer.content == plain.content
        assert answer.headers.get("content-encoding") == ("gzip" if "entries" in path else None)
        assert plain.headers.get("vary") == ("Accept-Encoding" if "entries" in path else None)
        assert "content-encoding" not in plain.headers


async def test_a_partial_tile_is_the_beginning_of_the_full_one_and_unsigned_entries_are_not_there(
    service: Service,
) -> None:
    log = await open_log(service)
    await log.arrive(300)
    await log.seal()  # 302 entries

    full, entries = await log.content("/tile/0/000"), await log.content("/tile/entries/000")
    assert len(full) == 8192
    assert await log.content("/tile/0/000.p/200") == full[: 200 * 32]
    assert parse_bundle(await log.content("/tile/entries/000.p/200")) == parse_bundle(entries)[:200]
    assert len(await log.content("/tile/1/000.p/1")) == 32
    for path in ("0/001", "0/001.p/47", "entries/001.p/47", "1/000.p/2", "1/000", "2/000.p/1", "0/002", "63/x999/999"):
        answer = await log.get(f"/tile/{path}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), path
        assert "302 signed entries" in answer.json()["error"], path
    for path in ("0/1", "64/000", "0/000.p/0", "0/000.p/256", "entries", "0/-01", "0/000.p/01", "x"):
        assert (await log.get(f"/tile/{path}")).status_code == 404, path


async def test_the_proof_of_each_arrival_leads_to_the_signed_head(service: Service) -> None:
    log = await open_log(service)
    await log.arrive(254)
    await log.seal()
    await log.pend("change", {"capacity": 120, "by": "organizer"})
    await log.seal()  # a bundle begins without an arrival
    await log.arrive(600)
    await log.seal()

    for number in (1, 254, 255, 256, 300, 854):
        entry = await read_verified_entry(log, f"/proofs/{number}")
        assert entry.startswith(b'{"kind":"arrival","number":%d,' % number)


async def test_a_proof_that_is_not_there_yet_says_when_to_ask_again(service: Service) -> None:
    log = await open_log(service, seal=True)
    await log.arrive(2)

    answer = await log.get("/proofs/2")
    assert (answer.status_code, answer.headers["retry-after"]) == (404, "1")
    assert answer.json()["error"].startswith("Arrival 2 is not sealed into the log of event ")

    await log.seal()
    assert await read_verified_entry(log, "/proofs/2")
    for number in ("0", "x", "-1", "9" * 30):
        assert (await log.get(f"/proofs/{number}")).status_code == 404


async def test_a_missing_log_or_generation_is_answered_with_what_is_missing(service: Service) -> None:
    log = await open_log(service, seal=True)

    for path, error in (
        ("/log/events/4711/checkpoint", "Event 4711 has no public log."),
        ("/log/queues/4711/proofs/1", "Queue 4711 has no public log."),
        (f"{log.path}/2/checkpoint", f"The log of event {log.path.rpartition('/')[2]} has no generation 2."),
        ("/log/events/0/key", "Nothing is found here."),
    ):
        answer = await service.http.get(path)
        assert (answer.status_code, answer.json()["error"]) == (404, error)
        assert answer.headers["cache-control"] == BRIEF[1].decode()
    assert (await service.http.post(f"{log.path}/checkpoint")).status_code == 405
    assert (await service.http.get(f"{log.path}/1/checkpoint")).content == await log.content("/checkpoint")


async def test_all_public_keys_are_listed_with_the_time_since_when_they_sign(service: Service) -> None:
    assert (await service.http.get("/log/keys")).json() == {"keys": []}
    log = await open_log(service, seal=True)

    [key] = (await service.http.get("/log/keys")).json()["keys"]

    vkey = (await log.content("/key")).decode().strip()
    assert b64decode(vkey.split("+", 2)[2]) == b"\x01" + b64decode(key["public_key"])
    assert key["since"].endswith("Z")
