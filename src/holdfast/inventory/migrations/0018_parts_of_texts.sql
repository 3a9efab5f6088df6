-- A part of a name, a title or a SKU is found down an index, however much is stored. Each text is cut into its parts of
-- three characters, and an index holds a number for each of them. What has all parts of a text may contain it.
--
-- Row-level security lets a shop's role use no such index, as `@>` is not leakproof. Functions that run as the owner of
-- the tables use it. They find rows of the shop in `holdfast.shop` alone, as the policies of the tables do.

create function parts(shop bigint, whole text) returns bigint[] language sql immutable strict parallel safe as
    $$ select array(select hashtextextended(substr(whole, n, 3), shop)
                      from generate_series(1, length(whole) - 2) as n) $$;
comment on function parts is 'A number for each three characters of a text. The same characters differ between shops.';

-- Each import writes its number into every row. With room beside the row, no index is written for that.
alter table catalog_variants set (fillfactor = 50);

alter table catalog_variants add column searched text
    generated always as (lower(product_title || ' ' || title || ' ' || coalesce(sku, ''))) stored;
alter table variants add column searched text
    generated always as (lower(coalesce(title, '') || ' ' || coalesce(sku, ''))) stored;
comment on column catalog_variants.searched is 'What is searched for a part of it.';
comment on column variants.searched is 'What is searched for a part of it.';

-- What was written is put into these indexes together, when it is 512 kB; until then each search reads it.
create index pools_by_parts on pools using gin (parts(shop_id, name_key)) with (gin_pending_list_limit = 512);
create index variants_by_parts on variants using gin (parts(shop_id, searched)) with (gin_pending_list_limit = 512);
create index catalog_variants_by_parts on catalog_variants using gin (parts(shop_id, searched))
    with (gin_pending_list_limit = 512);

-- The orders in which lists show what is found.
create index catalog_variants_by_title on catalog_variants (shop_id, product_title, title, gid);
create index variants_by_length on variants (shop_id, length(title), gid);

-- Comparisons of an enum are not leakproof, so an index on `status` is not searched under row-level security.
alter table pools add column status_key text generated always as (
    case when status = 'active' then 'active' when status = 'paused' then 'paused' else 'archived' end) stored;
comment on column pools.status_key is 'The status as a text, which an index is searched for.';
create index pools_by_status on pools (shop_id, status_key, id);

do $do$
declare
    place text;
    searched text;
begin
    for place, searched in values ('pools', 'name_key'), ('variants', 'searched'), ('catalog_variants', 'searched') loop
        execute format($sql$
            create function %1$I(part text) returns setof %2$I language plpgsql stable security definer rows 100
                set search_path = pg_catalog, public, pg_temp
                set enable_seqscan = off as $$
            declare
                own constant bigint := current_shop();
                sought constant text := lower(part);
                wanted constant bigint[] := parts(own, sought);
            begin
                if wanted <> '{}' then
                    -- No index is searched for `is not distinct from`, so none with everything of the shop is read.
                    return query select * from %2$I
                                  where parts(shop_id, %3$I) @> wanted and shop_id is not distinct from own
                                    and strpos(%3$I, sought) > 0;
                else
                    -- Shorter texts have no parts.
                    return query select * from %2$I where shop_id = own and strpos(%3$I, sought) > 0;
                end if;
            end $$
            $sql$, place || '_containing', place, searched);
        execute format('revoke execute on function %I(text) from public', place || '_containing');
        execute format('grant execute on function %I(text) to holdfast_shop', place || '_containing');
    end loop;
end $do$;
