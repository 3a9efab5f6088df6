-- An order does not name the location at which the platform has changed a level by it. Where that is not certain, the
-- change is stored until the levels are read and compared.
create table order_level_changes (
    id            bigint generated always as identity primary key,
    shop_id       bigint not null references shops,
    variant_gid   text not null,
    location_gid  text,
    amount        bigint not null check (amount <> 0),
    not_before    timestamptz not null,
    told_at       timestamptz not null default clock_timestamp()
);
comment on table order_level_changes is 'Changes of levels by orders whose location is not certain.';
comment on column order_level_changes.location_gid is
    'The level whose `expected` has it; null: none, because a level began with it, or is gone.';
comment on column order_level_changes.amount is 'A sale of two is -2.';
comment on column order_level_changes.not_before is 'A moment that is not after it, by the platform''s clock.';
create index order_level_changes_of_variant on order_level_changes (shop_id, variant_gid);
create index order_level_changes_by_age on order_level_changes (told_at);

create table ended_levels (
    shop_id   bigint not null references shops,
    item_gid  text not null,
    ended_at  timestamptz not null default clock_timestamp(),
    primary key (shop_id, item_gid)
);
comment on table ended_levels is 'When a level of an item was last deleted: orders may have changed it before.';
create index ended_levels_by_age on ended_levels (ended_at);

-- How many of the units of a line came back into stock: each return is a change of a level of its own.
alter table order_lines add column returned bigint not null default 0 check (returned >= 0);

do $$
declare
    each text;
begin
    foreach each in array array['order_level_changes', 'ended_levels'] loop
        execute format('alter table %I enable row level security', each);
        execute format('create policy own_shop on %I to holdfast_shop using (shop_id = (select current_shop()))', each);
    end loop;
end $$;
grant select, insert, update, delete on order_level_changes, ended_levels to holdfast_shop;
grant update (returned) on order_lines to holdfast_shop;
