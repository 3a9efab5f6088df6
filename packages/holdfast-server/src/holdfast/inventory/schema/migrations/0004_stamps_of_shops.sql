-- The functions `count_stock` and `count_drawn` replace these two, and cost less. They are applied right after this. In
-- between, only the statements of the service number entries, and name the entries that they revert.
alter table ledger
    drop constraint ledger_pool_id_seq_key,
    drop constraint ledger_shop_id_reverts_id_fkey;

-- Each row is of entries of the ledger, and so of a pool that is there for as long as they are.
alter table drawn drop constraint drawn_shop_id_pool_id_fkey;

-- By its stamp a process recognizes that nobody has changed a shop since its own last change. Then it need not read the
-- pools again.
alter table shared_inventories add column stamp bigint;
comment on column shared_inventories.stamp is
    'A random number for each batch of entries; null: pools or members have changed since.';
grant update (stamp) on shared_inventories to holdfast_shop;
