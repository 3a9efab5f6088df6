"""Webhooks: programs of tenants are told what happens, by signed messages to addresses that the tenants name."""

from holdfast.kit.environment.program import called_as

LISTEN_PORT = 8787
"""The port of `holdfast webhooks listen`, which `holdfast up` lets endpoints name."""


def listen_command(port: int, secret: str) -> str:
    """The command that shows what comes to a port of this machine."""
    option = "" if port == LISTEN_PORT else f" --port {port}"
    return f"{called_as()} webhooks listen{option} --secret {secret}"
