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
