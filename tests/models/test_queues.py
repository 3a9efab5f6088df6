"""A queue behaves as its model: pause, rate, schedule, size, release tokens."""

import base64
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.events.queues.queue_scene import open_queue
from tests.helpers.events_service import Service, running_events, unlimited
from tests.models.machine import SOAK, Machine, MachineStage, explore, open_stage
from tests.models.queues import Answer, Queue, Terms

OPERATIONS = 300_000 if SOAK else 1_500

VISITORS = st.sampled_from("abcdef")
RATES = st.sampled_from([2, 10, 30])
SIZES = st.none() | st.integers(1, 4)
DURATIONS = st.sampled_from([0, 1, 2, 5, 29, 30, 31, 60])
TIMES = st.sampled_from([None, None, None, 3, 10, 45])
"""Seconds from now."""


class QueueMachine(Machine):
    """An organizer with a queue, and those who wait in it."""

    def __init__(self, stage: MachineStage[Service]) -> None:
        super().__init__()
        self.stage = stage
        self.numbers: dict[str, int] = {}
        self.tokens: list[str] = []

    @initialize(rate=RATES, size=SIZES)
    def begin(self, rate: int, size: int | None) -> None:
        fields: dict[str, Any] = {"release_rate": rate, "max_queue_size": size, "token_ttl_minutes": 1}
        self.queue = self.stage.run(open_queue(self.stage.service, **fields))
        self.model = Queue(Terms(rate, size=size))
        self.join_together(["a", "b", "c"])

    def teardown(self) -> None:
        # So that nobody is released from it in later examples.
        self.stage.run(self.queue.ada.delete(self.queue.path))

    @rule(visitor=VISITORS)
    def join(self, visitor: str) -> None:
        self._hold_the_clock()
        answer = self.stage.run(self._ask_to_join(visitor))
        self.agree(f"{visitor} joins", answer, self.model.join(visitor))

    @rule(visitors=st.lists(VISITORS, min_size=2, max_size=5))
    def join_together(self, visitors: list[str]) -> None:
        """Several at once share a statement. They arrive in the order in which they were sent."""
        self._hold_the_clock()
        answers = self.stage.run_together(*(self._ask_to_join(visitor) for visitor in visitors))
        self.agree(f"{visitors} join", answers, [self.model.join(visitor) for visitor in visitors])

    @rule(visitor=VISITORS)
    def look(self, visitor: str) -> None:
        self._hold_the_clock()
        status = self.stage.run(self.queue.status(visitor))
        if status["status"] == "waiting":
            actual = {"position": status["position"], "wait": status["estimated_wait_seconds"]}
        else:
            actual = {"token": self._number(status["token"])} if "token" in status else {}
        self.agree(f"where {visitor} stands", actual, self.model.status(visitor))

    @rule()
    def check_all_visitors(self) -> None:
        for visitor in sorted(self.model.visitors):
            self.look(visitor)

    @precondition(lambda self: self.model.released)
    @rule(before=st.integers(0, 3), consumes=st.lists(st.booleans(), min_size=1, max_size=3))
    def verify(self, before: int, consumes: list[bool]) -> None:
        self.check_all_visitors()
        if not self.tokens:
            return
        token = self.tokens[-1 - before % len(self.tokens)]
        for consume in consumes:
            answer = self.stage.run(self.queue.verify(token, consume=consume)).json()
            actual = {"uses": answer["data"]["use_count"]} if answer["valid"] else answer["reason"]
            number = self._number(token)
            self.agree(f"token {number}, {consume=}", actual, self.model.verify(number, consume=consume))

    @rule(seconds=DURATIONS)
    def pass_time(self, seconds: float) -> None:
        while self.model.is_unsure_in(seconds):
            seconds += 1
        self.stage.run(self.queue.tick(seconds))
        self.model.tick(seconds)
        self._agree_on_the_queue("the queue")

    @precondition(lambda self: self.model.waiting)
    @rule()
    def pause_for_a_while(self) -> None:
        self._change({"active": False}, active=False)
        self.pass_time(61)
        self._change({"active": True}, active=True)
        self.pass_time(0)

    @rule(active=st.booleans())
    def pause(self, active: bool) -> None:
        self._change({"active": active}, active=active)

    @rule(rate=RATES)
    def set_rate(self, rate: int) -> None:
        self._change({"release_rate": rate}, rate=rate)

    @rule(size=SIZES, minutes=st.integers(1, 2))
    def set_size(self, size: int | None, minutes: int) -> None:
        self._change({"max_queue_size": size, "token_ttl_minutes": minutes}, size=size, ttl=60 * minutes)

    @rule(name=st.sampled_from(["starts", "ends"]), seconds=TIMES)
    def schedule(self, name: str, seconds: float | None) -> None:
        self._change({f"{name}_at": seconds}, **{name: None if seconds is None else self.model.now + seconds})

    def _change(self, fields: dict[str, Any], **terms: Any) -> None:
        self._hold_the_clock()
        for name in ("starts_at", "ends_at"):
            if fields.get(name) is not None:
                fields[name] = datetime.fromtimestamp(self.queue.now + fields[name], UTC).isoformat()
        answer = self.stage.run(self.queue.ada.patch(self.queue.path, {"queue_event": fields})).json()
        actual = answer.get("code") or _terms_of(answer["data"])
        self.agree(f"the queue with {terms}", actual, self.model.change(**terms))

    def _agree_on_the_queue(self, request: str) -> None:
        actual = _terms_of(self.stage.run(self.queue.ada.get(self.queue.path)).json()["data"])
        self.agree(request, actual, self.model.answer())

    def _hold_the_clock(self) -> None:
        """The time that the test itself took does not count."""
        self.stage.run(self.queue.pass_time(0))

    async def _ask_to_join(self, visitor: str) -> str:
        answer = await self.queue.ask_to_join(visitor)
        return "accepted" if answer.status_code == 202 else answer.json()["code"]

    def _number(self, token: str) -> int:
        """The number of a token, which is new if its id is."""
        payload = token.split(".")[1]
        id = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["jti"]
        if id not in self.numbers:
            self.numbers[id] = len(self.tokens)
            self.tokens.append(token)
        return self.numbers[id]


def _terms_of(queue: Answer) -> Answer:
    return {"active": queue["active"], "queue_length": queue["queue_length"]}


def test_a_queue_is_answered_as_its_model_says(database_url: str, tmp_path: Path) -> None:
    with open_stage(running_events(unlimited(database_url, tmp_path))) as stage:
        explore(stage, lambda: QueueMachine(stage), OPERATIONS)
