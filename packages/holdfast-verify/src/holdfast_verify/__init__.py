"""Checks the public logs of Holdfast: logs, receipts and draws. It trusts nothing but a key."""
