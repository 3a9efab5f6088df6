"""Arguments of the operations of people who sign in, which both services have."""

from base64 import b64encode
from typing import Any

BROWSER = b64encode(b"b" * 32).decode()


def account_arguments(email: str, account_id: int) -> dict[str, dict[str, Any]]:
    """Arguments of the operations of people who sign in."""
    return {
        "get_mailbox": {"mailbox": BROWSER},
        "stop_mails_to_mailbox": {"mailbox": BROWSER},
        "resume_mails_to_mailbox": {"mailbox": BROWSER},
        "ask_sign_in_link": {"email": email, "browser": BROWSER, "return_to": "/", "language": "en"},
        "get_sign_in_link": {"id": 7, "browser": BROWSER},
        "sign_in_by_link": {"id": 7, "browser": BROWSER, "user_agent": "Firefox"},
        "sign_in_by_password": {"email": email, "password": "not a password", "user_agent": "Firefox"},
        "get_known_browser": {"email": email, "secret": "x" * 43},
        "list_sessions": {"account_id": account_id},
        "end_sessions": {"account_id": account_id, "id": None},
    }
