"""Publishing the head log with cosignatures of witnesses, without waiting for a slow, wrong or missing one."""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from holdfast.events.log import head_log, sealing
from holdfast.events.log.head_log import WitnessClient, http_client
from holdfast.events.settings import Settings
from holdfast.kit.background.loops import RowWaiters
from holdfast_verify.formats.cosignature import Cosigner, find_cosignature
from holdfast_verify.formats.signed_note import parse_checkpoint, parse_note
from holdfast_verify.witness import WitnessDirectory
from tests.events.log.log_scene import LogScene, head_log_scene, open_log, seal_logs
from tests.events.log.outside_witness import OutsideWitness
from tests.helpers.background_loops import run_in_background
from tests.helpers.events_service import Service, eventually
from tests.helpers.sealing import seal_once


async def published_head(service: Service) -> str:
    return (await service.http.get("/log/heads/checkpoint")).text


def size_of(checkpoint: str) -> int:
    return parse_checkpoint(parse_note(checkpoint).text).size


async def grow(log: LogScene, clients: list[WitnessClient]) -> str:
    """The head of the head log, once there is another one."""
    await log.arrive(1)
    await seal_logs(log.service, witnesses=clients)
    return await published_head(log.service)


async def test_the_head_log_is_published_with_cosignatures_whatever_other_witnesses_do(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_log, "TIMEOUT_SECONDS", 1.0)
    log = await open_log(service, seal=True)
    log_key = (await service.http.get("/log/heads/key")).text.strip()
    good, bad = OutsideWitness(tmp_path, "good", log_key), OutsideWitness(tmp_path, "bad", log_key)
    other_key = Cosigner("bad.example.org", Cosigner("x", good.directory.cosigner.private_key).private_key)

    async def is_slow(_: Request) -> Response:
        await asyncio.sleep(30)
        return Response()

    async def lies(_: Request) -> Response:
        return Response(bad.directory.cosigner.signature_line("Another text.\n"))

    async def is_another(_: Request) -> Response:
        return Response(other_key.signature_line("Another text.\n"))

    async def refuses(_: Request) -> Response:
        return Response("No.\n", 422)

    async def claims_more(_: Request) -> Response:
        return Response("99999\n", 409, {"content-type": "text/x.tlog.size"})

    async def claims_nonsense(_: Request) -> Response:
        return Response("-1\n", 409, {"content-type": "text/x.tlog.size"})

    async def is_endless(_: Request) -> Response:
        return Response(bytes(100_000))

    faults = (is_slow, lies, is_another, refuses, claims_more, claims_nonsense, is_endless)
    async with http_client() as client, good.serve() as good_url, bad.serve() as bad_url:
        clients = [WitnessClient(client, bad_url, bad.verifier), WitnessClient(client, good_url, good.verifier)]
        for size, bad.answer in enumerate(faults, start=2):
            monkeypatch.setattr(head_log, "MAX_PAUSE_SECONDS", 0.0)
            checkpoint = await grow(log, clients)

            assert size_of(checkpoint) == size
            assert find_cosignature(checkpoint, good.verifier)
            assert find_cosignature(checkpoint, bad.verifier) is None
        # It is not asked again for a while; then it gives what the same head lacks.
        bad.answer = refuses
        monkeypatch.setattr(head_log, "MAX_PAUSE_SECONDS", 60.0)
        await head_log.publish(service.database, clients)
        count = len(bad.requests)
        await head_log.publish(service.database, clients)
        assert len(bad.requests) == count
        bad.answer = None
        clients[0] = WitnessClient(client, bad_url, bad.verifier)
        await head_log.publish(service.database, clients)
        checkpoint = await published_head(service)
        requests = len(good.requests), len(bad.requests)
        await head_log.publish(service.database, clients)

    assert find_cosignature(checkpoint, good.verifier)
    assert find_cosignature(checkpoint, bad.verifier)
    assert (len(good.requests), len(bad.requests)) == requests, "a head is cosigned once"
    assert [entry.size for entry in await head_log_scene(service).read_checkpoints()] == [*range(2, 18, 2)]


async def test_cosignatures_that_another_process_has_stored_meanwhile_stay(service: Service) -> None:
    log = await open_log(service, seal=True)
    await log.arrive(1)
    await seal_once(service.database)
    await sealing.sign(service.database)
    await seal_once(service.database)
    [head] = await service.database.read(head_log.list_head_logs)
    note = (await published_head(service)).replace(f"\n{head.signed_size}\n", f"\n{head.size}\n")
    assert head.signed_size < head.size

    for lines in ("first\nsecond\n", "second\n"):
        await service.database.transact(partial(head_log.store_checkpoint, head=head, checkpoint=note + lines))

    [stored] = await service.database.read(head_log.list_head_logs)
    assert (stored.signed_size, stored.checkpoint) == (head.size, f"{note}first\nsecond\n")


async def test_the_publishing_loop_finishes_the_work_of_a_killed_process_and_asks_the_witnesses(
    settings: Settings, own_service: Service, tmp_path: Path
) -> None:
    service = own_service
    log = await open_log(service, seal=True)
    witness = OutsideWitness(tmp_path, "partner", (await service.http.get("/log/heads/key")).text.strip())
    await log.arrive(1)
    for _ in range(2):
        await seal_once(service.database)
        await sealing.sign(service.database)  # and the process is killed before it publishes the head log

    async def is_cosigned() -> bool:
        return bool(find_cosignature(await published_head(service), witness.verifier))

    async with witness.serve() as url:
        configured = f"{witness.directory.cosigner.vkey} {url}/, "
        resources = service.database.resources
        configured_settings = settings.model_copy(update={"log_witnesses": configured})
        service.database.resources = replace(resources, settings=configured_settings)
        async with run_in_background(head_log.LOOP.run(service.database)):
            await eventually(is_cosigned)

    assert size_of(await published_head(service)) == 2


async def test_without_witnesses_sealing_publishes_new_heads_and_those_that_a_killed_process_has_left(
    service: Service,
) -> None:
    log = await open_log(service, seal=True)
    await log.arrive(1)
    await seal_once(service.database)
    await sealing.sign(service.database)
    await seal_once(service.database)  # and the process is killed before it publishes the head log
    left = await log.read_head()
    assert size_of(await published_head(service)) == 1

    for _ in range(2):
        await sealing.seal_pending(service.database, RowWaiters(lambda: None))
    assert size_of(await published_head(service)) == 2
    assert (await head_log_scene(service).read_proof(log))[0] == left

    await log.arrive(1)
    for _ in range(2):
        await sealing.seal_pending(service.database, RowWaiters(lambda: None))
    assert size_of(await published_head(service)) == 3
    assert (await head_log_scene(service).read_proof(log))[0] == await log.read_head()
    assert (await log.read_head()).size == left.size + 2


async def test_no_head_is_shown_before_the_witnesses_of_the_settings_were_asked(
    settings: Settings, own_service: Service, tmp_path: Path
) -> None:
    service = own_service
    log = await open_log(service, seal=True)
    before = await published_head(service)
    witness = OutsideWitness(tmp_path, "partner", (await service.http.get("/log/heads/key")).text.strip())
    configured = f"{witness.directory.cosigner.vkey} https://witness.example.org/"
    resources = service.database.resources
    service.database.resources = replace(resources, settings=settings.model_copy(update={"log_witnesses": configured}))

    await log.arrive(1)
    for _ in range(3):
        await sealing.seal_pending(service.database, RowWaiters(lambda: None))

    assert (await log.read_head()).size == 4
    assert await published_head(service) == before
    await head_log.publish(service.database)
    assert size_of(await published_head(service)) == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("https://witness.example.org", "the key of each witness, a space and its address"),
        ("w+00000000+AAAA https://witness.example.org", "cannot be used: The key is not"),
        ("{vkey} witness.example.org", "must be an http or https address"),
        ("{vkey} https://a.example.org, {vkey} https://b.example.org", "must name no key twice"),
    ],
)
def test_a_setting_that_names_no_witness_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    vkey = WitnessDirectory(tmp_path, "w").cosigner.vkey

    with pytest.raises(ValidationError, match=sentence):
        Settings(EVENTS_LOG_WITNESSES=text.format(vkey=vkey))  # pyright: ignore[reportCallIssue]
