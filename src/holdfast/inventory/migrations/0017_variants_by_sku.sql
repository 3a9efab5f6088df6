-- A variant is found by its SKU down an index. `lower(sku)` is computed only for rows that row-level security has let
-- pass, so an index on it is of no use there.

alter table variants add column sku_key text generated always as (lower(sku)) stored;
create index variants_of_sku on variants (shop_id, sku_key) where sku_key is not null;
