-- A change of stock reads what draws on its pools from these two indexes alone. Members change seldom, so the indexes
-- stay readable without the table.

drop index members_of_variant;
create index members_of_variant on members (shop_id, variant_gid) include (pool_id);
drop index members_of_pool;
create index members_of_pool on members (shop_id, pool_id, variant_gid) include (units_per_sale);
