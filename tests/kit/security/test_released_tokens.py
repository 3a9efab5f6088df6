"""Tokens of the last release: they are accepted, and signed with the same bytes. Only one module signs tokens."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey, RSAKey

import holdfast
from holdfast.events.oauth.external_consent import TRUSTED_AUTH
from holdfast.events.queues.release_tokens import RELEASE
from holdfast.inventory.agents.credentials import ACCESS_TOKEN, ASSERTION
from holdfast.kit.security import signed_tokens
from holdfast.kit.security.signed_tokens import SigningKeySet, TokenType

ISSUER = "https://api.example.com"
ISSUED_AT = 1_760_000_000
RELEASED = json.loads((Path(__file__).parent / "released_tokens.json").read_bytes())
TYPES: list[tuple[str, TokenType[Any]]] = [
    ("ES256", ASSERTION),
    ("ES256", ACCESS_TOKEN),
    ("RS256", RELEASE),
    ("RS256", TRUSTED_AUTH),
]


def released_keys(algorithm: Any) -> SigningKeySet:
    key: dict[str, Any] = RELEASED[algorithm]["key"]
    imported = ECKey.import_key(key) if algorithm == "ES256" else RSAKey.import_key(key)
    return SigningKeySet(algorithm, (signed_tokens._StoredKey(imported, 0),), ISSUED_AT)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(("algorithm", "type"), TYPES, ids=lambda value: getattr(value, "typ", value))
def test_a_token_of_the_last_release_is_accepted(algorithm: str, type: TokenType[Any]) -> None:
    token = RELEASED[algorithm]["tokens"][type.typ]

    assert released_keys(algorithm).verify(token, [type], ISSUER.__eq__)[1].iat == ISSUED_AT


@pytest.mark.parametrize("type", [RELEASE, TRUSTED_AUTH], ids=lambda kind: kind.typ)
def test_a_token_of_rsa_has_the_same_bytes_as_in_the_last_release(type: TokenType[Any]) -> None:
    token, keys = RELEASED["RS256"]["tokens"][type.typ], released_keys("RS256")

    assert keys.sign(type, keys.verify(token, [type], ISSUER.__eq__)[1]) == token


@pytest.mark.parametrize("type", [ASSERTION, ACCESS_TOKEN], ids=lambda kind: kind.typ)
def test_a_token_of_an_agent_has_the_same_content_as_in_the_last_release(type: TokenType[Any]) -> None:
    token, keys = RELEASED["ES256"]["tokens"][type.typ], released_keys("ES256")
    key = ECKey.generate_key("P-256", auto_kid=True)
    signing = SigningKeySet("ES256", (signed_tokens._StoredKey(key, 0),), ISSUED_AT)  # pyright: ignore[reportPrivateUsage]

    again = signing.sign(type, keys.verify(token, [type], ISSUER.__eq__)[1])

    assert again.split(".")[1] == token.split(".")[1]


def test_no_other_module_of_the_services_signs_or_decodes_jwts_with_the_library() -> None:
    [source] = holdfast.__path__
    jwt_import = re.compile(r"^\s*(from joserfc import .*\bjwt\b|from joserfc\.jwt |import joserfc)", re.MULTILINE)
    importing = {
        path.relative_to(source).as_posix()
        for path in Path(source).rglob("*.py")
        if jwt_import.search(path.read_text(encoding="utf-8"))
    }

    assert importing == {"kit/security/signed_tokens.py"}
