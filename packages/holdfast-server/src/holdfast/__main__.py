"""`python -m holdfast`"""

from holdfast.cli import main

main()
