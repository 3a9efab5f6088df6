-- The pools that run low are found down an index, however many others a shop has. Only a pool that begins or ceases to run
-- low is written to it. Without its condition on the status, PostgreSQL would read the index of names instead.

alter table pools add column is_low boolean not null
    generated always as (coalesce(greatest(0, on_hand - held - buffer) <= low_stock_at, false)) stored;
comment on column pools.is_low is 'Whether at most `low_stock_at` is available.';
create index low_pools on pools (shop_id, id) where is_low and status <> 'archived';
