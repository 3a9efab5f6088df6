-- What a change of a row causes:
--
-- * insert: must continue the ledger of its pool, whose stock it counts; merchants get a mail when little is left
--   (count_stock); is counted in the sums of its day, and must revert an entry that exists (count_drawn); programs are
--   told of the pools (tell_webhooks_of_stock)
-- * update or truncate: refused (refuse_change)
-- * delete: refused while its shop is not to be deleted (refuse_change)

-- refuse --------------------------------------------------------------------------------------------------------------

-- The ledger stays append-only for as long as its shop is there. When the platform asks to delete a shop, it goes too.
create or replace function refuse_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and tg_level = 'ROW' then
        if exists (select from installs where shop_id = old.shop_id and redacted_at is not null) then
            return old;
        end if;
    end if;
    raise exception 'the ledger is append-only' using errcode = 'integrity_constraint_violation';
end $$;

create or replace trigger append_only before update or truncate on ledger
    for each statement execute function refuse_change();
create or replace trigger kept_with_its_shop before delete on ledger
    for each row execute function refuse_change();

-- change --------------------------------------------------------------------------------------------------------------

-- The balance is the sum of the ledger because nothing but the ledger moves it. Each entry continues the one before it:
-- its number is the next one, and its balance is that of the one before with what it changes. The first is compared with
-- what the pool had, so each pool is looked up once. This also holds, in place of constraints that would look up the pool
-- of each entry again, that every entry has a pool, and that no number of a pool is given twice. Merchants are told of a
-- pool that falls to its `low_stock_at`, whatever the cause: nothing else counts stock.
create or replace function count_stock() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
declare
    fallen bigint[];
    broken boolean;
    repeated boolean;
    without_pool boolean;
begin
    with entry as (
        select shop_id, pool_id, seq, version, balance_after, held_after, delta, held_delta,
               lag(seq) over of_pool as seq_before, lag(balance_after) over of_pool as balance_before,
               lag(held_after) over of_pool as held_before
          from new_entries window of_pool as (partition by shop_id, pool_id order by seq)),
    change as (
        select shop_id, pool_id, count(*) as entries, max(version) as version, min(seq) as first_seq,
               min(balance_after - delta) filter (where seq_before is null) as balance_before,
               min(held_after - held_delta) filter (where seq_before is null) as held_before,
               sum(delta)::bigint as delta, sum(held_delta)::bigint as held_delta,
               coalesce(bool_or(seq = seq_before), false) as repeats,
               coalesce(bool_or(seq <> seq_before + 1 or balance_after <> balance_before + delta
                                or held_after <> held_before + held_delta), false) as breaks
          from entry group by shop_id, pool_id),
    counted as (
        update pools set on_hand = on_hand + change.delta, held = held + change.held_delta,
                         entries = pools.entries + change.entries, version = change.version
          from change
         where pools.shop_id = change.shop_id and pools.id = change.pool_id
     returning pools.id, status, low_stock_at, on_hand - pools.held - buffer as available,
               change.delta - change.held_delta as more,
               repeats or first_seq <= pools.entries - change.entries as repeats,
               breaks or (pools.entries - change.entries, on_hand - change.delta, pools.held - change.held_delta)
                         <> (first_seq - 1, balance_before, held_before) as differs)
    select array_agg(id) filter (where available <= low_stock_at and available - more > low_stock_at
                                       and status = 'active'),
           bool_or(differs), bool_or(repeats), count(*) < (select count(*) from change)
      into fallen, broken, repeated, without_pool from counted;
    if without_pool then
        raise exception 'these entries are of a pool that does not exist' using errcode = 'foreign_key_violation';
    end if;
    if repeated then
        raise exception 'a number of these entries is taken' using errcode = 'unique_violation';
    end if;
    if broken then
        raise exception 'these entries do not continue the ledger' using errcode = 'integrity_constraint_violation';
    end if;
    if fallen is not null then
        insert into mails (kind, thread, recipient, arguments)
        select 'low_stock', 'low stock ' || pools.id || ' ' || merchants.id, merchants.email,
               jsonb_build_object('pool_id', pools.id, 'merchant_id', merchants.id)
          from pools join merchants on merchants.shop_id = pools.shop_id
         where pools.id = any(fallen) and merchants.email is not null and merchants.proved_at is not null
           and wants_low_stock;
    end if;
    return null;
end $$;

create or replace trigger count_stock after insert on ledger
    referencing new table as new_entries for each statement execute function count_stock();

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
        select original.shop_id, original.pool_id, (original.created_at at time zone 'UTC')::date, original.source,
               taken.variant_gid, 0, 0, sum(taken.units)
          from new_entries
         cross join lateral (select * from ledger
                              where shop_id = new_entries.shop_id and id = new_entries.reverts_id limit 1) as original
         cross join lateral (
               select '' as variant_gid, -original.delta as units where original.by_variant is null
                union all
               select each.key, each.value::bigint from jsonb_each_text(original.by_variant) as each) as taken
         where original.delta < 0 and taken.units > 0
         group by 1, 2, 3, 4, 5
         order by 2, 3, 4, 5
            on conflict (pool_id, day, source, variant_gid) do update
           set returned = drawn.returned + excluded.returned;
    end if;
    return null;
end $$;

create or replace trigger count_drawn after insert on ledger
    referencing new table as new_entries for each statement execute function count_drawn();

-- tell ----------------------------------------------------------------------------------------------------------------

-- Messages of webhooks about pools whose stock has changed: one for each pool, however many entries it has got at once,
-- and one more if little is left. A trigger with this name runs after `count_stock`. It causes no notice, since that
-- would be part of the commit (decision 57): the program sends one afterwards.
create or replace function tell_webhooks_of_stock() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select change.shop_id, type, 'pool ' || change.pool_id, data
      from (select shop_id, pool_id, count(*) as entries, max(id) as last_entry_id, sum(delta)::bigint as delta,
                   sum(held_delta)::bigint as held_delta, array_agg(distinct kind order by kind) as kinds
              from new_entries group by shop_id, pool_id) as change
      join pools on pools.shop_id = change.shop_id and pools.id = change.pool_id
     cross join lateral (select greatest(0, on_hand - pools.held - buffer) as available) as level
     cross join lateral (
           values (1, 'stock.changed', true), (2, 'stock.low',
                   is_low and status = 'active' and on_hand - pools.held - buffer - delta + held_delta > low_stock_at))
               as message (place, type, applies)
     cross join lateral (
           select case when type = 'stock.low'
                       then jsonb_build_object('pool_id', pools.id, 'available', available,
                                               'low_stock_at', low_stock_at, 'version', pools.version)
                       else jsonb_build_object('pool_id', pools.id, 'on_hand', on_hand, 'held', pools.held,
                                               'available', available, 'version', pools.version, 'delta', delta,
                                               'held_delta', held_delta, 'kinds', kinds, 'entries', change.entries,
                                               'last_entry_id', last_entry_id,
                                               'variants', sellable_of_pool(pools.shop_id, pools.id)) end as data)
                         as body
     where applies and wants_webhook(change.shop_id, type)
     order by change.pool_id, place;
    return null;
end $$;

create or replace trigger tell_webhooks_of_stock after insert on ledger
    referencing new table as new_entries for each statement when (has_webhooks()) execute function tell_webhooks_of_stock();
