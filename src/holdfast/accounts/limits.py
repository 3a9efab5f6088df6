"""The names of the rate limits of signing in. The settings of a service set the limits."""

SIGN_INS_OF_CLIENT = "sign in"
SIGN_INS_OF_ADDRESS = "sign in to an address"
"""The names of the rate limits: of a client address, and of an e-mail address. Browsers in which the owner of an
address has signed in before have a separate limit, so that other people cannot use it up."""
