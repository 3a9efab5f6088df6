"""Witnesses cosign the head log that has the freeze of a list. The proof is kept, shown and compared with the round."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from holdfast.events.draws import drawing
from holdfast.events.log.head_log import WitnessClient, http_client
from holdfast.events.settings import Settings
from holdfast_verify.check import catching_up
from holdfast_verify.formats.proof_file import parse_proof_file
from holdfast_verify.formats.signed_note import parse_checkpoint
from tests.events.draws.event_scene import EventDraw, opening_event
from tests.events.log.log_scene import seal_logs
from tests.events.log.outside_witness import OutsideWitness
from tests.events.log.verification import verify
from tests.helpers.serving import serve_events


@dataclass
class WitnessedDraw:
    """An event with a draw, at a service with two witnesses."""

    draw: EventDraw
    witnesses: list[OutsideWitness]
    clients: list[WitnessClient]
    url: str

    async def publish(self, *clients: WitnessClient) -> None:
        """Seal, sign and publish, and keep the proofs of freezes."""
        await seal_logs(self.draw.service, witnesses=clients)
        await drawing.keep_proofs(self.draw.service.database, self.draw.subject)

    async def finish(self) -> None:
        await self.draw.draw()
        await self.draw.give_places()
        await seal_logs(self.draw.service)

    async def proof(self) -> tuple[int, str]:
        answer = await self.draw.service.http.get(f"/log/events/{self.draw.event['id']}/freeze-proof")
        return answer.status_code, answer.text

    async def page(self) -> str:
        path = self.draw.event["public_url"].removeprefix(self.url)
        text = re.sub(r"<[^>]+>", "", (await self.draw.service.http.get(path)).text)
        return " ".join(text.split())

    async def report(self, *options: str) -> tuple[str | None, list[str]]:
        """What `holdfast verify` says of the freeze: what was checked, and what is wrong."""
        _, report = await asyncio.to_thread(verify, f"{self.url}/log/events/{self.draw.event['id']}", *options)
        messages = [finding["message"] for finding in report["findings"] if finding["rule"] in ("draw", "witness")]
        return report["checked"].get("freeze"), messages


@pytest.fixture
async def witnessed_draw(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> AsyncIterator[WitnessedDraw]:
    monkeypatch.setattr(catching_up, "TIMEOUT_SECONDS", 0)
    async with (
        serve_events(settings) as service,
        opening_event(service, monkeypatch, capacity=3) as draw,
        http_client() as client,
    ):
        await draw.enter("ann", "bob", "cal")
        await seal_logs(service)
        log_key = (await service.http.get("/log/heads/key")).text.strip()
        witnesses = [OutsideWitness(tmp_path, name, log_key) for name in ("one", "two")]
        async with witnesses[0].serve() as one, witnesses[1].serve() as two:
            named = ",".join(
                f"{witness.directory.cosigner.vkey} {url}" for witness, url in zip(witnesses, (one, two), strict=True)
            )
            resources = service.database.resources
            with_witnesses = resources.settings.model_copy(update={"log_witnesses": named})
            service.database.resources = replace(resources, settings=with_witnesses)
            clients = [
                WitnessClient(client, address, witness.verifier)
                for witness, address in zip(witnesses, (one, two), strict=True)
            ]
            yield WitnessedDraw(draw, witnesses, clients, service.base_url)


async def freeze(draw: EventDraw) -> None:
    """Freeze the list. The log is not sealed with it yet."""
    await draw.seal()
    if await draw.freeze():
        await draw.seal()
        await draw.freeze()


async def test_the_proof_that_witnesses_cosigned_a_freeze_is_kept_and_agrees_with_the_log(
    witnessed_draw: WitnessedDraw,
) -> None:
    one, two = witnessed_draw.clients
    await witnessed_draw.publish(one)
    assert (await witnessed_draw.proof())[0] == 404
    await freeze(witnessed_draw.draw)
    await drawing.keep_proofs(witnessed_draw.draw.service.database, witnessed_draw.draw.subject)
    assert (await witnessed_draw.proof())[0] == 404, "the head log does not have the freeze yet"
    await witnessed_draw.publish(one)
    first = await witnessed_draw.proof()
    assert first[0] == 200
    log = await witnessed_draw.draw.log()
    head = parse_checkpoint((parse_proof_file(first[1]).extra or b"").decode())
    assert "freeze" in [entry["kind"] for entry in log[: head.size]]
    await witnessed_draw.publish(one, two)
    both = await witnessed_draw.proof()
    assert both != first, "it has one cosignature more"
    await witnessed_draw.publish(one)
    assert await witnessed_draw.proof() == both
    await witnessed_draw.finish()

    page = await witnessed_draw.page()
    for name in ("one.example.org", "two.example.org"):
        assert re.search(
            f"The witness {name} signed at .* that the public log had the frozen list: that was before", page
        )
    assert "This page cannot show whether the service has frozen another list after the round" in page
    assert await witnessed_draw.report() == (
        "when witnesses cosigned it was not checked: give the key of one as --witness",
        [],
    )
    vkeys = [witness.directory.cosigner.vkey for witness in witnessed_draw.witnesses]
    checked, faults = await witnessed_draw.report("--witness", vkeys[0], "--witness", vkeys[1])
    assert checked
    assert re.fullmatch(
        "one.example.org cosigned it at .*, two.example.org cosigned it at .*, before the round at .*", checked
    )
    assert [fault for fault in faults if "head log" not in fault] == []


async def test_without_a_cosignature_the_page_and_the_command_say_what_cannot_be_shown(
    witnessed_draw: WitnessedDraw,
) -> None:
    await freeze(witnessed_draw.draw)
    await witnessed_draw.publish()
    await witnessed_draw.finish()
    assert "No witness has signed before the round that the list was frozen." in await witnessed_draw.page()
    checked, faults = await witnessed_draw.report("--witness", witnessed_draw.witnesses[0].directory.cosigner.vkey)
    assert checked
    assert checked.startswith("no witness cosigned it before the round: only a person who kept a head")
    assert "one.example.org has not cosigned before the round that the list was frozen." in faults


async def test_a_cosignature_from_after_the_round_is_not_kept(
    witnessed_draw: WitnessedDraw, monkeypatch: pytest.MonkeyPatch
) -> None:
    await freeze(witnessed_draw.draw)
    monkeypatch.setattr("time.time", lambda: witnessed_draw.draw.round_at.timestamp() + 1)
    await witnessed_draw.publish(*witnessed_draw.clients)
    assert (await witnessed_draw.proof())[0] == 404


async def test_a_log_that_was_rewritten_after_it_was_cosigned_is_found(witnessed_draw: WitnessedDraw) -> None:
    await freeze(witnessed_draw.draw)
    await witnessed_draw.publish(*witnessed_draw.clients)
    await witnessed_draw.finish()
    # The log of another list, as if it had been there from the beginning.
    proof = parse_proof_file((await witnessed_draw.proof())[1])
    other = await witnessed_draw.draw.ada.create_event()
    await witnessed_draw.publish(*witnessed_draw.clients)
    answer = await witnessed_draw.draw.service.http.get(f"/log/events/{other['id']}/head-proof")
    await witnessed_draw.draw.service.run_sql("update freeze_proofs set proof = %(proof)s", proof=answer.text)
    _, faults = await witnessed_draw.report()
    assert any("The proof of the freeze is wrong: The proof is for another log" in fault for fault in faults)
    altered = proof._replace(extra=(proof.extra or b"").replace(b"\n", b"\n1", 1))
    await witnessed_draw.draw.service.run_sql("update freeze_proofs set proof = %(proof)s", proof=altered.text)
    _, faults = await witnessed_draw.report()
    assert any("The proof of the freeze is wrong" in fault for fault in faults)
