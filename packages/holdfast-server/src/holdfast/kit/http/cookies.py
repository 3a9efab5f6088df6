"""The header that sets a cookie, so that all cookies of a service are protected alike."""

from holdfast.kit.http.handler import Header


def cookie_header(
    name: str, value: str, *, path: str = "/", seconds: int, is_secure: bool, is_framed: bool = False
) -> Header:
    """The header that sets a cookie, which no script can read; with 0 seconds it removes the cookie.

    is_secure    whether the service has https
    is_framed    whether the cookie is for pages in a frame of another site. A browser keeps it for frames of that site
                 alone. Without https a browser sends it to no other site: then the other site must be on the same host
    """
    cookie = f"{name}={value}; Path={path}; Max-Age={seconds}; HttpOnly"
    if not is_secure:
        cookie += "; SameSite=Lax"
    elif is_framed:
        cookie += "; Secure; SameSite=None; Partitioned"
    else:
        cookie += "; Secure; SameSite=Lax"
    return b"set-cookie", cookie.encode()
