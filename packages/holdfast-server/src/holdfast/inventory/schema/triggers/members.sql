-- What a change of a row causes:
--
-- * insert, update or delete: the past of the members is kept, for orders (remember_links); processes forget what they
--   remember of the shop (forget_stamp)

-- change --------------------------------------------------------------------------------------------------------------

-- The past of `members`: an order takes what its variants took when it was placed.
create or replace function remember_links() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
declare
    second constant timestamptz := date_trunc('second', clock_timestamp());
begin
    if tg_op = 'UPDATE' and new.units_per_sale = old.units_per_sale then
        return null;
    end if;
    if tg_op <> 'INSERT' then
        delete from links where pool_id = old.pool_id and variant_gid = old.variant_gid and until = 'infinity'
                            and since >= second;
        update links set until = second
         where pool_id = old.pool_id and variant_gid = old.variant_gid and until = 'infinity';
    end if;
    if tg_op <> 'DELETE' then
        insert into links (shop_id, pool_id, variant_gid, units_per_sale, since)
        values (new.shop_id, new.pool_id, new.variant_gid, new.units_per_sale, second);
    end if;
    return null;
end $$;

create or replace trigger remember_links after insert or update or delete on members
    for each row execute function remember_links();

create or replace trigger forget_stamp after insert or delete or update on members
    for each row execute function forget_stamp();
