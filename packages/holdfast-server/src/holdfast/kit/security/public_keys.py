"""Public keys of other programs, and the signatures of tokens that were made with them (RFC 7517, RFC 7515)."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from joserfc import jws
from joserfc.errors import JoseError, SecurityWarning
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

ALGORITHMS = frozenset("RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519".split())
"""The accepted algorithms: none with a shared secret, as which a public key could be misused."""

REGISTRY = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
REGISTRY.max_header_length, REGISTRY.max_payload_length, REGISTRY.max_signature_length = 2048, 16384, 1400

PublicKey = RSAKey | ECKey | OKPKey

_KINDS: dict[Any, type[PublicKey]] = {kind.key_type: kind for kind in (RSAKey, ECKey, OKPKey)}


def usable_keys(jwks: Sequence[dict[str, Any]]) -> Iterator[PublicKey]:
    """The keys of a set that can verify signatures here. Keys of types that are not supported are left out."""
    for jwk in jwks:
        if jwk.get("use", "sig") != "sig":
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", SecurityWarning)  # such as an RSA key of fewer than 2,048 bits
                key = _KINDS[jwk.get("kty")].import_key(jwk)
        except (JoseError, SecurityWarning, ValueError, TypeError, KeyError):
            continue
        yield key


def has_signed(key: PublicKey, parts: jws.CompactSignature) -> bool:
    """Whether a key signed a token, used as its declared algorithm and use allow."""
    try:
        with warnings.catch_warnings():
            # The library warns about the name EdDSA, which RFC 9864 replaces, but servers still use it.
            warnings.simplefilter("ignore", SecurityWarning)
            return jws.validate_compact(parts, key, registry=REGISTRY)
    except (JoseError, ValueError):
        return False
