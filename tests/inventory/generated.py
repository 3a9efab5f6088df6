"""The texts that mean something to the inventory service."""

from hypothesis import strategies as st

from tests.generated import Schema
from tests.inventory.support import SINGLE, SIX_PACK, TWELVE_PACK

GIDS = st.sampled_from([SINGLE, SIX_PACK, TWELVE_PACK, "gid://shopify/ProductVariant/99999999999999999999"])
SHEETS = st.sampled_from(
    [
        "name,quantity\nHoney jars,5\n",
        "name,unit,quantity,buffer,low_stock_at\nΟΔΟΣ,g,1,2,3\nοδος,g,1,2,3\n",  # noqa: RUF001
        "name\nİstanbul\ni̇stanbul\n",
        f"pool,variant_gid,units_per_sale\nHoney jars,{SIX_PACK},5\nLids,{SIX_PACK},1\n",
        "name,quantity\nLids,-1000000000000\n",
        'name\n"unclosed',
    ]
)


def known(schema: Schema) -> st.SearchStrategy[str] | None:
    """Variants and spreadsheets."""
    if "ProductVariant" in schema.get("description", "") or schema.get("maxLength") == 120:
        return GIDS
    if schema["maxLength"] > 100_000:
        return SHEETS | st.text(min_size=1, max_size=300)
    return None
