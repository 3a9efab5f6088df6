"""Hands out what is scarce: stock, seats, places in a line."""

__version__ = "0.3.0.dev0"
