"""What people see of a shop: its storefront, its cart and orders, and the page of its merchant."""
