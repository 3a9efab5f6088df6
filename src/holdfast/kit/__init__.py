"""What both services share. It knows neither of them."""
