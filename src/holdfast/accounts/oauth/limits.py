"""The names of the rate limits of the authorization server. The settings of a service set the limits."""

REGISTRATIONS = "client registrations"
ALL_REGISTRATIONS = "client registrations of all"
TOKENS = "oauth tokens"
DOCUMENTS = "client documents"
CONSENTS = "consents"
"""Registrations of one client address, and of all together with a share for each of them; requests for tokens of one
client address; metadata documents that are read for one account, and its requests that another authorization server is
asked about (`handover.py`); consents of one account."""
