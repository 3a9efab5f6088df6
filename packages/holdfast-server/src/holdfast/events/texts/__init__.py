"""The texts that people write: Markdown as safe HTML, and web addresses in them."""
