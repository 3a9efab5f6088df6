"""Webhooks: programs of tenants are told what happens, by signed messages to addresses that the tenants name."""

LISTEN_PORT = 8787
"""The port of `holdfast webhooks listen`, which `holdfast up` lets endpoints name."""
