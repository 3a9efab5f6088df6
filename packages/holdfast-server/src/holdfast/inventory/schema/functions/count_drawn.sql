-- Daily sums for each pool, source and variant ('' = no variant). A reverted entry is added to `returned` on its
-- original day. An entry that reverts none that exists is refused here, in place of a foreign key for each row.
create or replace function count_drawn() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
declare
    takes boolean;
    names_variants boolean;
    differs boolean;
    reverts boolean;
begin
    select bool_or(by_variant is null and delta < 0 and reverts_id is null), bool_or(by_variant is not null),
           bool_or(by_variant is not null
                   and delta <> (select -coalesce(sum(value::bigint), 0) from jsonb_each_text(by_variant))),
           bool_or(reverts_id is not null)
      into takes, names_variants, differs, reverts from new_entries;
    if differs then
        raise exception 'variants took another number than these entries'
            using errcode = 'integrity_constraint_violation';
    end if;
    if takes then
        insert into drawn (shop_id, pool_id, day, source, variant_gid, times, taken, returned)
        select shop_id, pool_id, (created_at at time zone 'UTC')::date as day, source, '', count(*), -sum(delta), 0
          from new_entries where by_variant is null and delta < 0 and reverts_id is null
         group by shop_id, pool_id, day, source
         order by pool_id, day, source
            on conflict (pool_id, day, source, variant_gid) do update
           set times = drawn.times + excluded.times, taken = drawn.taken + excluded.taken;
    end if;
    if names_variants then
        insert into drawn (shop_id, pool_id, day, source, variant_gid, times, taken, returned)
        select shop_id, pool_id, (created_at at time zone 'UTC')::date as day, source, each.key,
               count(*) filter (where units > 0), coalesce(sum(units) filter (where units > 0), 0),
               coalesce(-sum(units) filter (where units < 0), 0)
          from new_entries
         cross join lateral jsonb_each_text(by_variant) as each
         cross join lateral (select each.value::bigint as units) as taken
         where by_variant is not null and units <> 0
         group by shop_id, pool_id, day, source, each.key
         order by pool_id, day, source, each.key
            on conflict (pool_id, day, source, variant_gid) do update
           set times = drawn.times + excluded.times, taken = drawn.taken + excluded.taken,
               returned = drawn.returned + excluded.returned;
    end if;
    if reverts then
        if exists (select from new_entries
                    where reverts_id is not null
                      and not exists (select from ledger where ledger.shop_id = new_entries.shop_id
                                                           and ledger.id = new_entries.reverts_id)) then
            raise exception 'these entries revert one that does not exist' using errcode = 'foreign_key_violation';
        end if;
        insert into drawn (shop_id, pool_id, day, source, variant_gid, times, taken, returned)
        select original.shop_id, original.pool_id, (original.created_at at time zone 'UTC')::date, original.source, '',
               0, 0, -sum(original.delta)
          from new_entries
         cross join lateral (select * from ledger
                              where shop_id = new_entries.shop_id and id = new_entries.reverts_id limit 1) as original
         where original.by_variant is null and original.delta < 0
         group by 1, 2, 3, 4
         order by 2, 3, 4
            on conflict (pool_id, day, source, variant_gid) do update
           set returned = drawn.returned + excluded.returned;
    end if;
    return null;
end $$;

create or replace trigger count_drawn after insert on ledger
    referencing new table as new_entries for each statement execute function count_drawn();
