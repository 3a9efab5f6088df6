"""HTTP clients: the certificate authorities that they trust. A connection that is reset at once counts as failed.

When a connection is open, anyio asks its socket for the address of the server. If the server has reset the connection
meanwhile, uvloop has no socket any more, and anyio raises an `AttributeError`, which no caller expects: three times in
a hundred such connections (anyio 4.16, uvloop 0.23).
"""

import contextlib
import ssl
from collections.abc import Generator
from functools import cache
from typing import Any

import httpx2


@cache
def trusted_certificates() -> ssl.SSLContext:
    """The context of TLS connections, which trusts the certificate authorities of the system.

    The certificates are read once in a process: that takes as long as many requests. The environment variables
    `SSL_CERT_FILE` and `SSL_CERT_DIR` name other ones.
    """
    return httpx2.create_ssl_context()


class HttpClient(httpx2.AsyncClient):
    """A client that raises `httpx2.ConnectError` if a server resets a connection at once."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        with reset_connections():
            return await super().send(request, **options)


@contextlib.contextmanager
def reset_connections() -> Generator[None]:
    """Raise `httpx2.ConnectError` if a server has reset a connection at once."""
    try:
        yield
    except AttributeError as error:
        if error.name != "getpeername":
            raise
        raise httpx2.ConnectError("The server closed the connection.") from error
