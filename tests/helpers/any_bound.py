"""A bound for what tests make of the kit's primitives."""

from holdfast.kit.contract.bounds import Bound

ANY_BOUND = Bound(
    name="Tests", service="both", total="none", tenant="none", address="none", reserved="none", stranger="nothing"
)
