"""Arguments of operations that both services have: of people who sign in, and of webhooks."""

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
        "sign_in_by_link": {"id": 7, "browser": BROWSER, "user_agent": "Firefox", "language": "en"},
        "sign_in_by_password": {"email": email, "password": "not a password", "user_agent": "Firefox"},
        "get_known_browser": {"email": email, "secret": "x" * 43},
        "list_sessions": {"account_id": account_id},
        "end_sessions": {"account_id": account_id, "id": None},
    }


def webhook_arguments(message_type: str, unused_endpoint_id: int) -> dict[str, dict[str, Any]]:
    """Arguments of the operations of webhooks: endpoint 1 gets a message, and another one is deleted."""
    return {
        "list_webhook_endpoints": {},
        "create_webhook_endpoint": {"url": "https://shop.example/hooks"},
        "get_webhook_endpoint": {"endpoint_id": 1},
        "update_webhook_endpoint": {"endpoint_id": 1, "types": [message_type], "ordered": False},
        "delete_webhook_endpoint": {"endpoint_id": unused_endpoint_id},
        "rotate_webhook_secret": {"endpoint_id": 1},
        "ping_webhook_endpoint": {"endpoint_id": 1},
        "list_webhook_deliveries": {"endpoint_id": 1, "limit": 5},
        "resend_webhook_messages": {"endpoint_id": 1, "since": "2026-01-01T00:00:00Z", "only_failed": False},
        "list_webhook_attempts": {"endpoint_id": 1, "message_id": "msg_1"},
        "find_webhook_failure": {"endpoint_id": 1},
        "resend_webhook_message": {"endpoint_id": 1, "message_id": "msg_1"},
    }
