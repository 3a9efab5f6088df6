"""Partners that cannot run here: a payment processor and a storefront platform, for tests and for `holdfast up`."""
