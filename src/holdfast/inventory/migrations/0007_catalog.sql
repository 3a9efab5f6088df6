-- What a shop has at the storefront platform: its variants, its locations, and how many of each are there (levels). It is
-- imported once, and then kept right by webhooks. Rows are found by the platform's ids.

create table catalogs (
    shop_id       bigint primary key references shops,
    changes       bigint not null default 0,
    rule          text not null default 'all' check (rule in ('all', 'one', 'shares')),
    import_id     bigint not null default 0,
    bulk_gid      text,
    stored_lines  bigint not null default 0,
    objects       bigint not null default 0,
    requested_at  timestamptz,
    finished_at   timestamptz,
    error         text check (length(error) <= 1000)
);
comment on column catalogs.changes is 'Grows when something changes that decides where quantities are wanted.';
comment on column catalogs.rule is 'How the quantity of a variant is spread over locations.';
comment on column catalogs.import_id is 'Number of the newest import; what an import did not find is deleted at its end.';
comment on column catalogs.bulk_gid is 'The bulk operation of an import that is under way at the platform.';
comment on column catalogs.stored_lines is 'Lines of its result that are stored: a process that goes on skips them.';

create table catalog_variants (
    shop_id        bigint not null references shops,
    gid            text not null check (gid ~ '^gid://[A-Za-z0-9_-]+/ProductVariant/[0-9]{1,20}$'),
    product_gid    text not null,
    product_title  text not null default '',
    title          text not null default '',
    sku            text,
    item_gid       text not null,
    tracked        boolean not null default true,
    updated_at     timestamptz,
    import_id      bigint not null default 0,
    primary key (shop_id, gid)
);
create index catalog_variants_of_item on catalog_variants (shop_id, item_gid);
create index catalog_variants_of_product on catalog_variants (shop_id, product_gid);

create table locations (
    shop_id     bigint not null references shops,
    gid         text not null check (gid ~ '^gid://[A-Za-z0-9_-]+/Location/[0-9]{1,20}$'),
    name        text not null,
    active      boolean not null,
    share_from  int not null default 0 check (share_from between 0 and 100),
    share_to    int not null default 0 check (share_to between share_from and 100),
    updated_at  timestamptz,
    import_id   bigint not null default 0,
    primary key (shop_id, gid)
);
comment on column locations.share_to is 'Its share of each quantity, in percent, lies between share_from and this.';

create table levels (
    shop_id       bigint not null references shops,
    item_gid      text not null,
    location_gid  text not null,
    gid           text,
    available     bigint not null,
    seen_at       timestamptz,
    import_id     bigint not null default 0,
    primary key (shop_id, item_gid, location_gid)
) with (fillfactor = 70);
comment on column levels.available is 'What the platform said last, or took from us.';
comment on column levels.seen_at is 'When that was so, by the platform''s clock, which says whole seconds.';

do $$
declare
    each text;
begin
    foreach each in array array['catalogs', 'catalog_variants', 'locations', 'levels'] loop
        execute format('alter table %I enable row level security', each);
        execute format('create policy own_shop on %I to holdfast_shop using (shop_id = (select current_shop()))', each);
        execute format('grant select, insert, update, delete on %I to holdfast_shop', each);
    end loop;
end $$;
