"""The networks from which organizers are registered: all organizers of one share what strangers may store."""

from holdfast.kit.contract.caller import Caller
from holdfast.kit.contract.sources import is_source, path_of
from holdfast.kit.security.secrets import Secret

HASH_CHARACTERS = 24


def networks_of(secret: Secret, caller: Caller) -> list[str]:
    """The networks of a caller without a credential, as hashes, since addresses are personal data; empty for others.

    A network is an IPv4 address, or the IPv6 networks of /64 and of /48, which have the same share.
    """
    sources = path_of(caller.name) if is_source(caller.name) else ()
    signer = secret.signer("networks of organizers", HASH_CHARACTERS)
    return [signer.sign(source) for source in sources]
