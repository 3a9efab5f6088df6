"""The demo data of both services."""
