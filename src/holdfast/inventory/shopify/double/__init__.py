"""The storefront platform's double: shops of our own that behave as the platform's do, for tests and for newcomers.

It answers what Holdfast asks, and refuses what the platform would refuse: requests that its schema does not allow, a
code that was used before, a level that has moved meanwhile. It sells, cancels and refunds, tells by signed webhooks,
and behaves badly on request. The service talks to it by HTTP only, as it would talk to the platform.
"""

CLIENT_ID = "holdfast-demo"
"""What demo shops know the app by."""

CLIENT_SECRET = "holdfast-demo-secret-that-all-know"  # noqa: S105 - known to all, as nothing is sold
