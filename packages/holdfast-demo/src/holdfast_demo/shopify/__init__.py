"""The double of the storefront platform: shops that behave as the platform's do, for tests and for newcomers.

It answers the requests of Holdfast, and refuses what the platform would refuse: requests that its schema does not
allow, a code that was used before, a level that has changed meanwhile. It sells, cancels and refunds, sends signed
webhooks, and fails on request. The service talks to it by HTTP only, as it would talk to the platform.
"""

CLIENT_ID = "holdfast-demo"
"""The client id of the app in demo shops."""
