"""A visitor may be called anything: each name is one visitor, and `next.url` leads to that one."""

import json

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from tests.events.queues.queue_scene import QueueScene

AWKWARD = (
    *("a/b", "/", "//", "a//b", "../1", "a/..", "...", "%", "%2F", "%252F", "%00", "a b", " ", "\t", "\n", ".\n", "+"),
    *("?", "#", "a?b=c#d", "&", ";", ":", "@", "ann@example.com", "\\", '"', "'", "<script>", "{queue_id}", "status"),
    *("\u00e9", "e\u0301", "\u4f60\u597d", "\U0001f39f\ufe0f", "\u202e", "\ufeff", "\ufffd", "\x01", "\x7f"),
    *("x" * 255, "\U0001f39f" * 255),
)


async def test_next_leads_to_the_visitor_whatever_the_id(queue: QueueScene) -> None:
    polls = [poll for visitor in AWKWARD for poll in await queue.join(visitor)]

    assert len(set(polls)) == len(AWKWARD)
    for number, poll in enumerate(polls, 1):
        assert poll.isascii()
        assert (await queue.ada.get(poll)).json()["position"] == number
    for visitor in AWKWARD:
        await queue.join(visitor)
    assert await queue.length() == len(AWKWARD)


async def test_a_released_visitor_of_any_name_has_a_token_of_that_name(queue: QueueScene) -> None:
    [poll] = await queue.join("a/b?\u00e9\U0001f39f")
    await queue.tick()

    token = (await queue.ada.get(poll)).json()["token"]
    assert (await queue.verify(token)).json()["data"]["visitor_id"] == "a/b?\u00e9\U0001f39f"


@pytest.mark.parametrize("visitor", ["", ".", "..", "x" * 256, "x" * 10_240, "\x00", "a\x00b", "\U0001f39f" * 256])
async def test_a_visitor_id_that_no_address_can_hold_is_refused(queue: QueueScene, visitor: str) -> None:
    answer = await queue.ask_to_join(visitor)

    assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed")
    assert answer.json()["errors"].keys() == {"visitor_id"}
    assert await queue.length() == 0


@pytest.mark.parametrize("body", [b'{"visitor_id": "\\ud800"}', b'{"visitor_id": "\xff"}'])
async def test_a_visitor_id_that_is_not_valid_unicode_is_refused(queue: QueueScene, body: bytes) -> None:
    answer = await queue.ada.post(f"{queue.path}/join", content=body, headers={"Content-Type": "application/json"})

    assert 400 <= answer.status_code < 500
    assert await queue.length() == 0


@pytest.mark.parametrize(
    "segment", ["", "%00", "a%00", "%ff", "%ed%a0%80", "%c0%80", "x" * 256, "x" * 10_240, "a/b", "%2e", "%2E%2e"]
)
async def test_a_visitor_id_that_cannot_exist_is_answered_with_404(queue: QueueScene, segment: str) -> None:
    answer = await queue.ada.get(f"{queue.path}/status/{segment}")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


@hypothesis(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(visitor=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=255))
async def test_a_visitor_id_of_any_other_text_is_accepted(queue: QueueScene, visitor: str) -> None:
    if visitor in {".", ".."}:
        return
    answer = await queue.ask_to_join(visitor)
    assert answer.status_code == 202, json.dumps(visitor)

    assert (await queue.ada.get(answer.json()["next"]["url"])).json()["status"] == "waiting"
