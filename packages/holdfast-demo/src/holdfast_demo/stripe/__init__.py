"""Demo payments: a payment processor of our own that behaves as Stripe's API does, for tests and for newcomers.

No money moves. It answers what Holdfast asks, and refuses what Stripe would refuse: parameters that stripe-python's
types do not know, amounts below the minimum, a second refund. The service talks to it by HTTP only, through
stripe-python, as it would talk to Stripe.
"""
