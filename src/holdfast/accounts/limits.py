"""The names of the rate limits of signing in. The settings of a service set the limits."""

SIGN_INS_OF_CLIENT = "sign in"
"""What one client address asks for."""

LINKS_TO_ADDRESS = "links to an e-mail address"
PASSWORDS_OF_ADDRESS = "passwords of an e-mail address"
"""What all client addresses together ask for one e-mail address, with a share for each of them."""

SIGN_INS_OF_OWNER = "sign in by the owner"
"""What browsers ask for one e-mail address in which its owner has signed in before. Other people cannot use it up."""
