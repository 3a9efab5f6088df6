-- What the past orders of a shop would have done with pools that are only suggested: the last replay of each shop. The orders
-- that are read for it are deleted when it is done.
create table replays (
    shop_id       bigint primary key references shops,
    replay_id     bigint not null,
    requested_at  timestamptz not null default clock_timestamp(),
    since         timestamptz not null,
    pools         jsonb not null,
    cursor        text not null default '' check (length(cursor) <= 2000),
    pages         int not null default 0,
    read          int not null default 0,
    gone_lines    int not null default 0,
    result        jsonb,
    error         text check (length(error) <= 1000)
);
comment on column replays.replay_id is 'Number of the replay: a task of an earlier one does nothing.';
comment on column replays.pools is 'The suggested pools, with what the platform had of each variant then.';
comment on column replays.cursor is 'The platform''s cursor of the next page of orders; empty: the first one.';
comment on column replays.pages is 'How many pages are stored: a task that goes on reads behind them.';
comment on column replays.read is 'How many orders these pages have.';
comment on column replays.gone_lines is 'How many of their lines are of variants that are no longer there.';
comment on column replays.result is 'What came out; null: it is not done.';

create table replay_pages (
    shop_id  bigint not null references shops,
    number   int not null,
    orders   jsonb not null,
    primary key (shop_id, number)
);
comment on column replay_pages.orders is 'The orders of a page that took something of a suggested pool, without anything of customers.';

alter table catalog_variants add column picture text check (length(picture) <= 2000);
comment on column catalog_variants.picture is 'The address of a picture of the product at the platform; null: it has none.';

do $$
declare
    each text;
begin
    foreach each in array array['replays', 'replay_pages'] loop
        execute format('alter table %I enable row level security', each);
        execute format('create policy own_shop on %I to holdfast_shop using (shop_id = (select current_shop()))', each);
    end loop;
end $$;
grant select, insert, update, delete on replays, replay_pages to holdfast_shop;
