-- What a process remembers of the pools of a shop is no longer right when pools or members change, whatever process changes
-- them. Entries of the ledger do not come here: who writes them sets a new stamp.
create or replace function forget_stamp() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
begin
    update shared_inventories set stamp = null
     where shop_id = coalesce(new.shop_id, old.shop_id) and stamp is not null;
    return null;
end $$;
