"""Mails that the owner of an address has stopped: all of the service, except those that the owner asks for."""
