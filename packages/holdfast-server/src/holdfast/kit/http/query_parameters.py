"""The query parameters that an answer may repeat.

A proxy may have signed the query of a request, with a secret that signs other messages too. The sender of the request
must not learn the signature. So an answer repeats only parameters that the service knows by name, and none of these
carries a proof.
"""

from collections.abc import Collection

NO_PARAMETERS: frozenset[str] = frozenset()


def known_parameters(query: bytes, parameters: Collection[str]) -> bytes:
    """The parameters of a query that have one of these names, unchanged."""
    pairs = query.split(b"&")
    return b"&".join(pair for pair in pairs if pair and pair.partition(b"=")[0].decode("latin-1") in parameters)


def has_other_parameters(query: bytes, parameters: Collection[str]) -> bool:
    """Whether a query has parameters that have none of these names."""
    return known_parameters(query, parameters) != b"&".join(pair for pair in query.split(b"&") if pair)
