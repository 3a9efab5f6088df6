create or replace function delete_of_shop(shop bigint, most int) returns bigint language plpgsql as $$
declare
    name regclass;
    owner text;
    has_id boolean;
    deleted bigint;
    total bigint := 0;
begin
    if not exists (select from installs where shop_id = shop and redacted_at is not null) then
        return 0;
    end if;
    for name, owner, has_id in
        select of_shop.attrelid::regclass, of_shop.attname, exists (select from pg_attribute as other where other.attrelid = of_shop.attrelid
                                                      and other.attname = 'id' and not other.attisdropped)
          from pg_attribute as of_shop join pg_class on pg_class.oid = of_shop.attrelid
         where of_shop.attname in ('shop_id', 'tenant_id') and not of_shop.attisdropped and pg_class.relkind = 'r'
           and pg_class.relnamespace = (select relnamespace from pg_class where oid = 'shops'::regclass)
           and of_shop.attrelid <> 'installs'::regclass
    loop
        begin
            execute format('delete from %s where ctid = any(array(select ctid from %1$s where %I = $1 %s limit $2))',
                           name, owner, case when has_id then 'order by id desc' else '' end) using shop, most;
            get diagnostics deleted = row_count;
            total := total + deleted;
        exception when foreign_key_violation then
            null; -- rows of another table still name these
        end;
    end loop;
    if total = 0 then
        delete from installs where shop_id = shop;
        delete from shops where id = shop;
    end if;
    return total;
end $$;
comment on function delete_of_shop is
    'Deletes up to so many rows of each table that are of a shop to be deleted, and at last the shop itself. Returns how
many; call it until that is 0.';
