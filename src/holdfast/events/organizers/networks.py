"""The networks from which organizers are registered: all organizers of one share what strangers may store."""

from holdfast.kit.contract.caller import Caller
from holdfast.kit.running.rate_limits import is_network
from holdfast.kit.security.secrets import Secret

HASH_CHARACTERS = 24


def networks_of(secret: Secret, caller: Caller) -> list[str]:
    """The networks of a caller without a credential, as hashes, since addresses are personal data; empty for others.

    This is the one place that says what a network is: an IPv4 address, or an IPv6 network of /64.
    """
    sources = [caller.name] if is_network(caller.name) else []
    signer = secret.signer("networks of organizers", HASH_CHARACTERS)
    return [signer.sign(source) for source in sources]
