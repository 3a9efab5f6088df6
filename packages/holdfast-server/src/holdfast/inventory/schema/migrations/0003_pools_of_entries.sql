-- The functions `count_stock` and `keep_pools_of_ledger` replace this foreign key, and cost less. They are applied right
-- after this. In between, entries move only the balance of pools that exist, and no pool is deleted but with its shop.
alter table ledger drop constraint ledger_shop_id_pool_id_fkey;
