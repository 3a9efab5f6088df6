"""What an access token may be allowed to do."""

SCOPES = {
    "read_events": "Reading events, prices, registrations and the people in them.",
    "write_events": "Publishing and changing events, and registering people.",
    "manage_keys": "Listing, creating and revoking API keys.",
}
"""The scopes of access tokens, each with what it allows. API keys have none: they may do everything."""
