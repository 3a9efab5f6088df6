"""Client assertions as a client signs them (RFC 7523, section 2.2), and the public keys that it publishes."""

import time
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

JWT_BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ISSUER = "http://events.test"


def signing_key(kid: str = "key-1", algorithm: str = "RS256") -> RSAKey | ECKey:
    """A new key. One of RSA takes 40 ms."""
    if algorithm == "RS256":
        return RSAKey.generate_key(2048, {"kid": kid, "use": "sig", "alg": "RS256"})
    return ECKey.generate_key("P-256", {"kid": kid, "use": "sig", "alg": "ES256"})


class SigningClient:
    """A client with a key of its own, or this one."""

    def __init__(
        self, client_id: str, kid: str = "key-1", algorithm: str = "RS256", key: RSAKey | ECKey | None = None
    ) -> None:
        self.client_id = client_id
        self.algorithm = algorithm
        self.key = key or signing_key(kid, algorithm)

    @property
    def jwks(self) -> dict[str, Any]:
        return {"keys": [self.key.as_dict(private=False)]}

    def assertion(self, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """A signed assertion, changed; None leaves a claim or a member of the header out.

        `exp`, `nbf` and `iat` are seconds from now.
        """
        now = int(time.time())
        default: dict[str, Any] = {
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": f"{ISSUER}/oauth/token",
            "jti": f"{now}-1",
            "iat": 0,
            "exp": 300,
        }
        members = {"alg": self.algorithm, "kid": self.key.kid, **(header or {})}
        present = {name: value for name, value in members.items() if value is not None}
        content = {name: value for name, value in {**default, **claims}.items() if value is not None}
        for name in {"exp", "nbf", "iat"} & content.keys():
            content[name] = now + content[name] if isinstance(content[name], int) else content[name]
        return jwt.encode(present, content, self.key, [present["alg"]])

    def proof(self, header: dict[str, Any] | None = None, **claims: Any) -> dict[str, str | None]:
        """The fields of a form that prove who the client is."""
        return {"client_assertion_type": JWT_BEARER, "client_assertion": self.assertion(header, **claims)}
