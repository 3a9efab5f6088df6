"""Shared by our doubles of outside platforms: a store, a clock that tests move, faults on request, webhooks.

A double behaves as the platform does, for tests, demonstrations and newcomers.
"""
