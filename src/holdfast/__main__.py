"""`python -m holdfast`"""

from holdfast.cli import app

app()
