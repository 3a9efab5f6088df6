"""The certificate authorities that our HTTP clients trust."""

import ssl
from functools import cache

import httpx2


@cache
def trusted_certificates() -> ssl.SSLContext:
    """Return the context of TLS connections, which trusts the certificate authorities of the system.

    The certificates are read once in a process: that takes as long as many requests. The environment variables
    `SSL_CERT_FILE` and `SSL_CERT_DIR` name other ones.
    """
    return httpx2.create_ssl_context()
