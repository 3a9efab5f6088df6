-- What a change of a row causes:
--
-- * update of id or shop_id: refused (refuse_change_of_key)
-- * update of other columns than its stock: processes forget what they remember of the shop (forget_stamp)
-- * delete: refused while it has entries in the ledger (keep_pools_of_ledger); processes forget what they remember of
--   the shop (forget_stamp)

-- refuse --------------------------------------------------------------------------------------------------------------

-- The keys that the ledger names never change (see `count_stock`). A trigger for each row would lock each pool that stock
-- is counted in once more, whatever columns it is about.
create or replace function refuse_change_of_key() returns trigger language plpgsql as $$
begin
    raise exception 'the key of a pool cannot change' using errcode = 'foreign_key_violation';
end $$;

create or replace trigger refuse_change_of_key before update of id, shop_id on pools
    for each statement execute function refuse_change_of_key();

-- A pool that has entries in the ledger is not deleted (see `count_stock`).
create or replace function keep_pools_of_ledger() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
declare
    kept bigint;
begin
    select pool_id into kept from before
     cross join lateral (select pool_id from ledger where shop_id = before.shop_id and pool_id = before.id limit 1)
                        as its_entry
     limit 1;
    if found then
        raise exception 'pool % has entries in the ledger', kept using errcode = 'foreign_key_violation';
    end if;
    return null;
end $$;

create or replace trigger keep_pools_of_ledger after delete on pools
    referencing old table as before for each statement execute function keep_pools_of_ledger();

-- change --------------------------------------------------------------------------------------------------------------

create or replace trigger forget_stamp
    after delete or update of name, unit, buffer, low_stock_at, allow_negative, status on pools
    for each row execute function forget_stamp();
