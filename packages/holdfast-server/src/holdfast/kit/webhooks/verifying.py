"""A function that verifies messages, as documents and pages show it to authors of receivers."""

VERIFYING = """\
import base64, hashlib, hmac, time


def is_genuine(secret, headers, body):
    id = headers.get("webhook-id", "")
    sent_at = headers.get("webhook-timestamp", "")
    given = headers.get("webhook-signature", "").encode().split(b" ")
    if not sent_at.isdecimal():
        return False
    if abs(time.time() - int(sent_at)) > 300:
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{id}.{sent_at}.".encode() + body
    digest = hmac.digest(key, signed, hashlib.sha256)
    expected = b"v1," + base64.b64encode(digest)
    return any(hmac.compare_digest(expected, each) for each in given)"""
