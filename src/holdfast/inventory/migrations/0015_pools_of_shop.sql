-- Indexes that serve look-ups under row-level security, which adds the shop to what a statement asks for. An index that
-- does not begin with the shop is combined with one that holds everything of the shop, and all of that is read: a look
-- at a pool's history read millions of index entries.

create index ledger_of_pool on ledger (shop_id, pool_id, created_at, seq);
drop index ledger_of_pool_in_time;

drop index members_of_pool;
create index members_of_pool on members (shop_id, pool_id, variant_gid);

create index holds_active on holds (shop_id, id) where released_at is null;
drop index holds_of_shop;

drop index levels_to_read;
create index levels_to_read on levels (shop_id, item_gid, location_gid) where read_again;

-- `lower(name)` is computed only for rows that row-level security has let pass, so an index on it is of no use there.
alter table pools add column name_key text generated always as (lower(name)) stored;
drop index pool_names;
create unique index pool_names on pools (shop_id, name_key) where status <> 'archived';
comment on column pools.name_key is 'Two pools that are not archived have different ones.';
