"""The package `holdfast-verify`, without a service."""
