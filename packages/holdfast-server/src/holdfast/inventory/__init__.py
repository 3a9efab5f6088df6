"""Shared inventory pools for storefront shops: several variants draw on one stock, exactly."""
