"""The built-in OAuth 2.1 authorization server: clients, consent, codes and tokens. See `docs/decisions/0040`."""
