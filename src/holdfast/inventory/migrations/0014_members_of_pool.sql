-- The members of a pool, of a shop. Row-level security adds the shop to what a statement asks for: with the primary key
-- alone, whose columns do not name it, the plan may read every member of the shop once for each pool.

create index members_of_pool on members (shop_id, pool_id);
