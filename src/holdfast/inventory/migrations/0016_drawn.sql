-- Who drew what. The ledger says for which variants an entry took something; a trigger keeps sums of a day. So what drew
-- on a pool in a month is read from some rows, however many entries the month has.

alter table ledger add column by_variant jsonb;
comment on column ledger.by_variant is
    'Units that each variant took of the pool, by its gid; below zero: they came back. Null: it was for no variant.';

create table drawn (
    shop_id      bigint not null,
    pool_id      bigint not null,
    day          date not null,
    source       text not null,
    variant_gid  text not null,
    times        bigint not null,
    taken        bigint not null,
    returned     bigint not null,
    primary key (pool_id, day, source, variant_gid),
    foreign key (shop_id, pool_id) references pools (shop_id, id),
    check (times >= 0 and taken >= times and returned >= 0)
) with (fillfactor = 70);
comment on table drawn is 'What was taken of pools on a day in UTC. Only the ledger''s trigger writes it.';
comment on column drawn.variant_gid is 'Empty: what was taken for no variant.';

insert into drawn (shop_id, pool_id, day, source, variant_gid, times, taken, returned)
select shop_id, pool_id, (created_at at time zone 'UTC')::date, source, '', count(*), -sum(delta), 0
  from ledger where delta < 0 and created_at > now() - interval '32 days'
 group by 1, 2, 3, 4;

create function count_drawn() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
begin
    if exists (select from fresh where by_variant is not null
                  and delta <> (select -coalesce(sum(value::bigint), 0) from jsonb_each_text(by_variant))) then
        raise exception 'variants took another number than these entries'
            using errcode = 'integrity_constraint_violation';
    end if;
    insert into drawn (shop_id, pool_id, day, source, variant_gid, times, taken, returned)
    select shop_id, pool_id, (created_at at time zone 'UTC')::date, source, variant_gid,
           count(*) filter (where units > 0), coalesce(sum(units) filter (where units > 0), 0),
           coalesce(-sum(units) filter (where units < 0), 0)
      from (select shop_id, pool_id, created_at, source, each.key as variant_gid, each.value::bigint as units
              from fresh cross join lateral jsonb_each_text(by_variant) as each
             union all
            select shop_id, pool_id, created_at, source, '', -delta from fresh
             where by_variant is null and delta < 0) as draw
     where units <> 0
     group by 1, 2, 3, 4, 5
     order by 2, 3, 4, 5
        on conflict (pool_id, day, source, variant_gid) do update
       set times = drawn.times + excluded.times, taken = drawn.taken + excluded.taken,
           returned = drawn.returned + excluded.returned;
    return null;
end $$;
create trigger count_drawn after insert on ledger
    referencing new table as fresh for each statement execute function count_drawn();

alter table drawn enable row level security;
create policy own_shop on drawn to holdfast_shop using (shop_id = (select current_shop()));
grant select on drawn to holdfast_shop;
