"""The names of the rate limits of the authorization server, which the settings of a service fill in."""

REGISTRATIONS = "client registrations"
ALL_REGISTRATIONS = "client registrations of all"
TOKENS = "oauth tokens"
DOCUMENTS = "client documents"
CONSENTS = "consents"
"""Registrations of one client address, and of all together; requests for tokens of one client address; metadata
documents that are read for one account, and consents of one account."""
