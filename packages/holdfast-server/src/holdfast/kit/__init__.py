"""The code that both services share. It imports nothing from either of them."""
