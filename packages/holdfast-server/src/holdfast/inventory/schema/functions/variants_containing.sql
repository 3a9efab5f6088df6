-- What contains a text, of the shop in `holdfast.shop` alone, as the policy of the table has it. Row-level security
-- lets a shop's role use no index of parts, as `@>` is not leakproof; a function that runs as the owner of the table
-- uses it.
create or replace function variants_containing(part text) returns setof variants language plpgsql stable
    security definer rows 100 set search_path = pg_catalog, public, pg_temp set enable_seqscan = off as $$
declare
    own constant bigint := current_shop();
    pattern constant text := search_pattern(part);
    wanted constant bigint[] := parts(own, fold_text(part));
begin
    if wanted <> '{}' then
        -- No index is searched for `is not distinct from`, so none with everything of the shop is read.
        return query select * from variants
                      where parts(shop_id, fold_text(searched)) @> wanted and shop_id is not distinct from own
                        and fold_text(searched) like pattern;
    else
        -- Shorter texts have no parts.
        return query select * from variants where shop_id = own and fold_text(searched) like pattern;
    end if;
end $$;
revoke execute on function variants_containing(text) from public;
grant execute on function variants_containing(text) to holdfast_shop;
