"""The pages of the events service: the frame of the kit, filled with the templates of this folder."""

from pathlib import Path

from holdfast import accounts
from holdfast.kit.pages.site import Site

SITE = Site("Holdfast Events", Path(__file__).parent, accounts.FOLDER)
