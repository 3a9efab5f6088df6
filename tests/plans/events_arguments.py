"""Arguments of the operations of the events service that are no tools, for the tests of plans.

Their statements should find rows: event 1 has much of everything.
"""

from base64 import b64encode
from typing import Any

from tests.events.agents.samples import ANN, FIRST
from tests.helpers.events_service import event_fields
from tests.helpers.pictures import picture
from tests.plans.common_arguments import BROWSER, account_arguments, webhook_arguments

OWN: dict[str, Any] = {"event_id": 1, "public_id": ANN}
SUBSCRIPTION = {
    "endpoint": "https://push.example/1",
    "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    "sender_key": "",
    "language": "en",
}
SCAN = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

BEA: dict[str, Any] = {"event_id": 3, "user_id": "beabeabe"}

OTHER_ARGUMENTS: dict[str, dict[str, Any]] = {
    "register_organizer": {"name": "Zoe Events", "email": "zoe@example.com", "slug": "zoe-events"},
    "join_queue": {"queue_id": 1, "visitor_id": "somebody"},
    "get_queue_status": {"queue_id": 1, "visitor_id": "visitor 70000"},
    "verify_queue_token": {"token": "no token", "consume": True},
    "read_queue_progress": {"queue_id": 1},
    "visit_waiting_room": {"queue_id": 1, "visitor_id": "visitor 70000"},
    "join_waiting_room": {"queue_id": 1, "visitor_id": "somebody"},
    "get_waiting_room_receipt": {"queue_id": 1, "visitor_id": "visitor 70000"},
    "find_linked_event": {"event_id": 1},
    "read_event_page": {"event_id": 1},
    "read_organizer_page": {"slug": "other-7", "after": ["2020-01-01T00:00:00Z", 1]},
    "read_organizer_feed": {"slug": "other-7"},
    "sign_up": {"event_id": 1, "email": "cleo@example.com", "name": "Cleo", "language": "en", "secret": "0" * 32},
    "send_details": OWN,
    "get_own_registration": OWN,
    "get_own_receipt": OWN,
    "correct_address": {**OWN, "email": "right@example.com"},
    "cancel_own_registration": OWN,
    "undo_own_cancellation": OWN,
    "get_own_cancellation": OWN,
    "subscribe_to_push": {**OWN, **SUBSCRIPTION},
    "unsubscribe_from_push": {**OWN, "endpoint": "https://push.example/1"},
    "confirm_own": OWN,
    "stop_mails": OWN,
    "send_data_link": {**OWN, "language": "en"},
    "check_data_link": {"public_id": ANN, "issued": 1},
    "export_own_data": {"public_id": ANN, "issued": 1, "holder": BROWSER},
    "preview_own_erasure": {"public_id": ANN, "issued": 1, "holder": BROWSER},
    "erase_own_data": {"public_id": ANN, "issued": 1, "holder": BROWSER},
    "receive_payment_message": {"body": ""},
    "open_onboarding": {"is_opened_by_mail": True},
    "confirm_payout_account": {"stripe_account_id": "acct_other", "is_opened_by_mail": True},
    "refresh_payouts": {},
    "get_removed_payment": OWN,
    **account_arguments("person7@example.com", 10007),
    "list_agent_limits": {},
    "get_agent_limit": {"client_id": "app"},
    "set_agent_limit": {"client_id": "app", "daily_limit": 20},
    "list_connected_clients": {},
    "disconnect_client": {"client_id": "app"},
    "become_organizer": {"account_id": 10007, "name": "Somebody", "slug": "somebody"},
    "get_unproved_account": {"account_id": 1},
    "prove_account": {"account_id": 1, "session_id": 1, "keep": True},
    "end_access": {"account_id": 1},
    "open_own_data": {"account_id": 1, "session_id": 1, "language": "en"},
    "get_branding": {},
    "change_branding": {"accent": "#8a1f6b", "about": "We draw."},
    "change_logo": {"key": FIRST},
    "list_own_events": {},
    "add_person": {"event_id": 1, "email": "dora@example.com", "name": "Dora", "notify": True},
    "get_console_event": {"event_id": 1},
    "count_figures_of_event": {"event_id": 1},
    "get_latest_of_event": {"event_id": 1},
    "get_publication_terms": {},
    "count_people_of_event": {"event_id": 1},
    "edit_event": {"event_id": 1, "changes": {"event_id": 1, "title": "Another"}},
    "get_event_defaults": {},
    "keep_photo": {"content": b64encode(picture()).decode()},
    "get_photos": {"keys": [FIRST]},
    "copy_event": {"event_id": 1, "event": event_fields()},
    "get_mail_paragraphs": {"event_id": 1},
    "update_mail_paragraphs": {
        "event_id": 1,
        "version": "",
        **dict.fromkeys(("seat", "waitlisted", "promoted", "payment_due", "refused", "removed", "refund"), "Hello."),
        **dict.fromkeys(("event_changed", "event_cancelled"), "Hello."),
    },
    **webhook_arguments("event.full", 101),
    "list_agent_actions": {"limit": 20, "before": 40_000},
    "list_key_uses": {},
    "get_queue_history": {"queue_id": 1},
    "list_events_without_queue": {},
    "list_events_with_queue": {"queue_ids": [1]},
    "list_mails": {"limit": 50},
    "retry_mail": {"mail_id": 7},
    "search_registrations": {"event_id": 1, "status": None, "text": None, "user_id": None, "newest_first": True}
    | {"after": None, "limit": 50},
    "move_registrations": {"event_id": 1, "user_ids": [ANN]},
    "remove_registrations": {"event_id": 1, "user_ids": [ANN]},
    "check_in_people": {"event_id": 1, "user_ids": [ANN], "device": "By hand"},
    "get_timeline": {"event_id": 1, "user_id": ANN},
    "send_mail_of_registration": {"event_id": 1, "user_id": ANN},
    "list_payments": {"event_id": 3, "limit": 50, "before": None},
    "get_payer": BEA,
    "get_person_payments": BEA,
    "refund_payment": {**BEA, "payment_id": 1, "amount": 1},
    "get_payouts": {},
    "set_refund_rule": {"refund_days": 3},
    "store_scans": {"event_id": 1, "device": "Door", "scans": [{"id": SCAN, "text": ANN, "told_at": 0}]},
    "get_check_in": {"event_id": 1},
    "find_people_to_check_in": {"event_id": 1, "text": "person7"},
    "take_back_scan": {"event_id": 1, "scan_id": SCAN},
    "list_people_to_check_in": {"event_id": 1, "after": 0},
    "list_news_of_check_in": {"event_id": 1, "after": 0},
    "preview_seat_handover": {"event_id": 1},
    "hand_seats_over": {"event_id": 1, "at_most": 5},
}
