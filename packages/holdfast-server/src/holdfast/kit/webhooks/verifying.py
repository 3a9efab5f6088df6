"""A function that verifies messages, as documents and pages show it to authors of receivers."""

VERIFYING = """\
import base64, hashlib, hmac, time


def is_genuine(secret, headers, body):
    id, sent_at, given = (headers.get(f"webhook-{name}") or "" for name in ("id", "timestamp", "signature"))
    if not sent_at.isdecimal() or abs(time.time() - int(sent_at)) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{id}.{sent_at}.".encode() + body, hashlib.sha256)
    expected = b"v1," + base64.b64encode(digest)
    return any(hmac.compare_digest(expected, signature.encode()) for signature in given.split(" "))"""
