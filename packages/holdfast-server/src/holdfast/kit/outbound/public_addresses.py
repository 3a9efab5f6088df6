"""Which IP addresses belong to the public internet."""

from ipaddress import IPv4Address, IPv6Address, ip_network

GLOBAL_UNICAST = ip_network("2000::/3")
NAT64 = ip_network("64:ff9b::/96")
SPECIAL_NETWORKS = tuple(
    ip_network(network)
    for network in """
    0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24
    192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4
    2001::/23 2001:db8::/32 2620:4f:8000::/48 3fff::/20
    168.63.129.16/32
    """.split()
)
"""Networks that are not public: those in the special-purpose registries of IANA (iana-ipv4-special-registry and
iana-ipv6-special-registry), multicast, and the address of a large cloud's internal service for its machines."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Whether an address, and every IPv4 address embedded in it, belongs to the public internet."""
    if isinstance(address, IPv6Address):
        if wrapped := _embedded_addresses(address):
            return all(is_public(ipv4) for ipv4 in wrapped)
        if address not in GLOBAL_UNICAST:
            return False
    return not any(address in network for network in SPECIAL_NETWORKS)


def _embedded_addresses(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses embedded in an IPv6 address, which may receive its packets."""
    if address in NAT64:
        return (IPv4Address(int(address) & 0xFFFF_FFFF),)
    inside = address.ipv4_mapped or address.sixtofour
    return (inside,) if inside else address.teredo or ()
