"""What visitors of a waiting room do while everything fails, and whether the tickets explain the answers."""

import base64
import itertools
import json
from bisect import bisect_left
from collections import defaultdict
from math import inf
from typing import Any

from tests.helpers.events_service import Client
from tests.models.crowd_client import AnyClient
from tests.models.history import History, SentRequest, agree, never_inverted, nothing_of_refused

RATE = 30
"""Visitors released in a second."""


async def create_queue(ada: Client) -> str:
    """The path of a new queue of an organizer."""
    return f"/api/queues/{(await ada.create_queue(release_rate=RATE, token_ttl_minutes=60))['id']}"


class Visitors:
    """Visitors of one queue. Each joins, asks for the place of two visitors, and shows a token."""

    def __init__(self, history: History, path: str) -> None:
        self.history = history
        self._path = path
        self._names = (f"visitor{number}" for number in itertools.count())
        self._joined: list[str] = []
        self._tokens: list[str] = []

    async def come(self, http: AnyClient, _: int) -> None:
        chance, ask, name = self.history.chance, self.history.ask, next(self._names)
        join = await ask(http, ("join", name), "POST", f"{self._path}/join", json={"visitor_id": name})
        self._joined += [] if join.given_up else [name]
        if not self._joined:
            return
        for seen in (chance.choice(self._joined), chance.choice(self._joined[-20:])):
            look = await ask(http, ("look", seen), "GET", f"{self._path}/status/{seen}")
            if look.answer and "token" in look.answer.json():
                self._tokens.append(look.answer.json()["token"])
        if self._tokens:
            token, consume = chance.choice(self._tokens[-30:]), chance.random() < 0.3
            request, body = ("verify", claims_of(token)["jti"], consume), {"token": token, "consume": consume}
            await ask(http, request, "POST", "/api/queues/verify_token", once=True, json=body)


def claims_of(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def explain_answers(exchanges: list[SentRequest], tickets: dict[str, int], released: list[tuple[int, float]]) -> None:
    """Fail unless the tickets, in their order, explain every answer."""
    joins = {exchange.request[1]: exchange for exchange in exchanges if exchange.request[0] == "join"}
    nothing_of_refused(joins.values(), tickets)
    joins = {name: join for name, join in joins.items() if not join.given_up}
    for join in joins.values():
        agree(join.answer.status_code == 202, f"{join.request} was told {join.answer.text}")
    agree(joins.keys() == tickets.keys(), f"lost: {joins.keys() - tickets.keys()}, made up: {tickets.keys() - joins}")
    again = _came_again(exchanges, joins, tickets)
    first = sorted({**tickets, **again}.items(), key=lambda ticket: ticket[1])
    numbers = sorted([*tickets.values(), *again.values()])
    missing = {*range(1, len(numbers) + 1)} - {*numbers}
    agree(numbers == [*range(1, len(numbers) + 1)], f"given twice, or missing: {missing} of {len(numbers)}")
    never_inverted(joins[name] for name, _ in first)

    agree([ticket for ticket, _ in released] == [*range(1, len(released) + 1)], "the releases are not in order")
    times = [moment for _, moment in released]
    for first, moment in enumerate(times):
        most = bisect_left(times, moment + 1) - first
        agree(most <= RATE, f"{most} visitors were released within a second, from number {first} on")

    seen = [exchange for exchange in exchanges if exchange.request[0] == "look" and exchange.answer]
    looks = [exchange for exchange in seen if exchange.request[1] not in again]
    _positions_never_rise(looks, tickets)
    _tokens_stay(looks, tickets)
    tokens = [exchange.answer.json()["token"] for exchange in seen if "token" in exchange.answer.json()]
    replaced = {claims_of(token)["jti"] for token in tokens if claims_of(token)["tkt"] in again.values()}
    _tokens_are_used_once([exchange for exchange in exchanges if exchange.request[0] == "verify"], replaced)


def _came_again(exchanges: list[SentRequest], joins: dict[str, SentRequest], tickets: dict[str, int]) -> dict[str, int]:
    """The first tickets of visitors who have a second one.

    A process that was stopped may do a join that was sent again elsewhere. If the token was used up by then, this
    visitor comes again.
    """
    used_up = {exchange.request[1] for exchange in exchanges if exchange.request[0] == "verify" and exchange.request[2]}
    again: dict[str, int] = {}
    for exchange in exchanges:
        name = exchange.request[1]
        if exchange.request[0] != "look" or not exchange.answer:
            continue
        if joins[name].lost and (token := exchange.answer.json().get("token")):
            ticket = claims_of(token)["tkt"]
            if claims_of(token)["jti"] in used_up and ticket != tickets[name]:
                again[name] = ticket
    return again


def _positions_never_rise(looks: list[SentRequest], tickets: dict[str, int]) -> None:
    """Each position says which ticket was released last. That only grows, from one answer to a later question."""
    known: list[tuple[float, int]] = []
    for look in looks:
        ticket, body = tickets[look.request[1]], look.answer.json()
        known.append((look.answered, ticket - body["position"] if "position" in body else ticket))
    known.sort()
    answered = [at for at, _ in known]
    furthest = [-1, *itertools.accumulate((serving for _, serving in known), max)]
    for look in looks:
        ticket, body = tickets[look.request[1]], look.answer.json()
        most = ticket - body["position"] if "position" in body else inf
        before = furthest[bisect_left(answered, look.sent)]
        agree(before <= most, f"{look.request} was told {body}, though ticket {before} had been released before")


def _tokens_stay(looks: list[SentRequest], tickets: dict[str, int]) -> None:
    """Each visitor has one token, which names its ticket."""
    first: dict[str, str] = {}
    for look in looks:
        if token := look.answer.json().get("token"):
            name = look.request[1]
            agree(
                claims_of(token)["tkt"] == tickets[name], f"the token of {name} names ticket {claims_of(token)['tkt']}"
            )
            agree(first.setdefault(name, token) == token, f"{name} has two tokens")


def _tokens_are_used_once(verifications: list[SentRequest], replaced: set[str]) -> None:
    """No token is valid after it was used up, none is used up by nobody, and every use has a number of its own.

    replaced    tokens of visitors who came again; once they have another ticket, such a token is revoked
    """
    by_token: defaultdict[str, list[SentRequest]] = defaultdict(list)
    for verification in verifications:
        by_token[verification.request[1]].append(verification)
    for token, uses in by_token.items():
        answers = [(use, use.answer.json()) for use in uses if use.answer]
        valid = [(use, body["data"]["use_count"]) for use, body in answers if body["valid"]]
        agree(len({count for _, count in valid}) == len(valid), f"two uses of token {token} have one number")
        ends = [count for use, count in valid if use.request[2]]
        agree(all(count <= end for _, count in valid for end in ends), f"token {token} was valid after it was used up")
        never_inverted(use for use, _ in sorted(valid, key=lambda use: use[1]))
        for use, body in answers:
            if not body["valid"]:
                known = {"used", "revoked"} if token in replaced else {"used"}
                agree(body["reason"] in known, f"{use.request} was told {body}")
                agree(any(other.request[2] and other.sent < use.answered for other in uses), f"nobody used {token} up")
