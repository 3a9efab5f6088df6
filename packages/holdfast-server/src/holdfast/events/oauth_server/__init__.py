"""The OAuth 2.1 server: clients, consent, grants, codes and tokens."""
