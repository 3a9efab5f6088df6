"""The names of the rate limits of signing in, which the settings of a service fill in."""

OF_A_CLIENT = "sign in"
OF_AN_ADDRESS = "sign in to an address"
"""The names of the rate limits. Browsers in which the owner of an address has signed in before have a limit of their
own, so that nobody else can use it up."""
