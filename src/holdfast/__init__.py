"""Hands out what is scarce: stock, seats, places in a line."""

__version__ = "0.2.0"
