"""The pages of the inventory service: the frame of the kit, filled with the templates of this folder."""

from pathlib import Path

from holdfast import accounts
from holdfast.kit.pages.site import Site

SITE = Site("Holdfast Inventory", Path(__file__).parent, accounts.FOLDER)
