"""A door behind a Holdfast waiting room: lets released visitors in. It checks their tokens offline.

Copy this file into your site. It needs PyJWT 2.7 or newer (`pip install 'pyjwt[crypto]>=2.7'`).
"""

import threading
import time

import jwt


class TokenRefusal(Exception):
    """The token is refused: send the visitor to the waiting room.

    reason    "missing"
              "signature": forged, damaged, or not a release token
              "audience": for another queue, or of a Holdfast with another address
              "expired"
              "early": not valid yet; compare the clocks of both machines
              "used": this process has let a visitor in with it before
              "unavailable": the keys cannot be fetched
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"The token is refused: {reason}.")
        self.reason = reason


class QueueDoor:
    """Verifies the release tokens of one waiting room with its published keys.

    base_url    the address of Holdfast, without a slash at the end
    queue_id    the queue in front of this site
    fail_open   whether to let all visitors in while the keys cannot be fetched; if not, none is
    """

    def __init__(self, base_url: str, queue_id: int, *, fail_open: bool = False) -> None:
        self._issuer = base_url
        self._audience = f"queue:{queue_id}"
        self._fail_open = fail_open
        self._keys = jwt.PyJWKClient(f"{base_url}/.well-known/queue-jwks.json", lifespan=300, timeout=3)
        self._used: dict[str, float] = {}
        self._lock = threading.Lock()

    def visitor(self, token: str | None) -> str:
        """The id of the visitor whom a token lets in, the first time it is shown. Raises `TokenRefusal`.

        With `fail_open`, the id is "unverified" while the keys cannot be fetched.
        """
        if not token:
            raise TokenRefusal("missing")
        try:
            if jwt.get_unverified_header(token).get("typ") != "queue-release+jwt":
                raise TokenRefusal("signature")
            claims = jwt.decode(
                token,
                self._keys.get_signing_key_from_jwt(token),
                algorithms=["RS256"],
                issuer=self._issuer,
                audience=self._audience,
                leeway=10,
                options={"require": ["exp", "iat", "sub", "jti"]},
            )
        except jwt.PyJWKClientConnectionError as error:
            if self._fail_open:
                return "unverified"
            raise TokenRefusal("unavailable") from error
        except jwt.ExpiredSignatureError as error:
            raise TokenRefusal("expired") from error
        except jwt.ImmatureSignatureError as error:
            raise TokenRefusal("early") from error
        except (jwt.InvalidAudienceError, jwt.InvalidIssuerError) as error:
            raise TokenRefusal("audience") from error
        except jwt.PyJWTError as error:
            raise TokenRefusal("signature") from error
        if not self._is_first(claims["jti"], claims["exp"]):
            raise TokenRefusal("used")
        return claims["sub"]

    def _is_first(self, token_id: str, expires_at: float) -> bool:
        """Whether this process sees a token for the first time; remembered until the token has expired."""
        with self._lock:
            now = time.time()
            self._used = {id: end for id, end in self._used.items() if end + 10 > now}
            if token_id in self._used:
                return False
            self._used[token_id] = expires_at
            return True
