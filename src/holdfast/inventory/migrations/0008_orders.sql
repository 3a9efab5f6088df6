-- Orders of the storefront platform: what each line has taken of the stock so far. A webhook says how an order is now; what
-- the ledger gets is the difference to what is stored here. So it does not matter how often, how late, or in which order
-- webhooks come.

-- Which variant drew on which pool, and when: an order takes what its variants took when it was placed.
create table links (
    shop_id         bigint not null,
    pool_id         bigint not null,
    variant_gid     text not null,
    units_per_sale  bigint not null,
    since           timestamptz not null,
    until           timestamptz not null default 'infinity',
    primary key (pool_id, variant_gid, until),
    foreign key (shop_id, pool_id) references pools (shop_id, id),
    check (since < until)
);
comment on table links is 'The past of `members`, which a trigger keeps: each row is true from `since` until before `until`.';
comment on column links.since is 'In whole seconds, like the moments in webhooks.';
create index links_of_variant on links (shop_id, variant_gid);

insert into links (shop_id, pool_id, variant_gid, units_per_sale, since)
select shop_id, pool_id, variant_gid, units_per_sale, date_trunc('second', now()) from members;

create function remember_links() returns trigger language plpgsql security definer
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
create trigger remember_links after insert or update or delete on members
    for each row execute function remember_links();

-- Only orders of which a line drew on a pool are here, with those lines.
create table orders (
    shop_id     bigint not null references shops,
    id          bigint not null check (id > 0),
    placed_at   timestamptz not null,
    updated_at  timestamptz not null,
    revision    bigint not null default 1,
    primary key (shop_id, id)
);
comment on column orders.id is 'The platform''s number of it.';
comment on column orders.updated_at is 'When it became as it is here, by the platform''s clock and in whole seconds.';
comment on column orders.revision is 'Grows with every change of this row.';

create table order_lines (
    shop_id      bigint not null,
    order_id     bigint not null,
    id           bigint not null check (id > 0),
    variant_gid  text not null,
    taken        bigint not null check (taken >= 0),
    primary key (shop_id, order_id, id),
    foreign key (shop_id, order_id) references orders
);
comment on column order_lines.taken is 'How many of the variant it has taken: what was ordered, and did not come back.';

create table order_draws (
    shop_id         bigint not null,
    order_id        bigint not null,
    line_id         bigint not null,
    pool_id         bigint not null,
    units_per_sale  bigint not null check (units_per_sale between 1 and 1000000000),
    primary key (shop_id, order_id, line_id, pool_id),
    foreign key (shop_id, order_id, line_id) references order_lines,
    foreign key (shop_id, pool_id) references pools (shop_id, id)
);
comment on table order_draws is 'The pools that a line takes from, and how much each one takes, as it was when it was placed.';
create index order_draws_of_pool on order_draws (pool_id);

create table order_catches (
    shop_id  bigint primary key references shops,
    until    timestamptz not null
);
comment on table order_catches is 'Until when all changes of orders are counted, whether or not a webhook told of them.';
comment on column order_catches.until is 'By the platform''s clock.';

do $$
declare
    each text;
begin
    foreach each in array array['links', 'orders', 'order_lines', 'order_draws', 'order_catches'] loop
        execute format('alter table %I enable row level security', each);
        execute format('create policy own_shop on %I to holdfast_shop using (shop_id = (select current_shop()))', each);
    end loop;
end $$;
grant select on links, orders, order_lines, order_draws, order_catches to holdfast_shop;
grant insert on orders, order_lines, order_draws, order_catches to holdfast_shop;
grant update (updated_at, revision) on orders to holdfast_shop;
grant update (taken) on order_lines to holdfast_shop;
grant update (until) on order_catches to holdfast_shop;
