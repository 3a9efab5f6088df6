-- Shops, their keys, their pools, and the ledger by which all stock is counted.
--
-- Two walls keep shops apart: every statement names its shop, and row-level security shows the role `holdfast_shop`,
-- which every request's transaction takes on, only the rows of the shop in `holdfast.shop`.

do $$ begin
    -- Roles belong to the whole server: another service, or its operator, may have made it.
    if not exists (select from pg_roles where rolname = 'holdfast_shop') then
        begin
            create role holdfast_shop nologin;
        exception when duplicate_object or unique_violation then null;
        end;
    end if;
    begin
        grant holdfast_shop to current_user;
    exception when insufficient_privilege then
        if not pg_has_role(current_user, 'holdfast_shop', 'member') then
            raise;
        end if;
    end;
end $$;
grant usage on schema public to holdfast_shop;

create function current_shop() returns bigint language sql stable parallel safe as
    $$ select nullif(current_setting('holdfast.shop', true), '')::bigint $$;

create table shops (
    id           bigint generated always as identity primary key,
    domain       text not null unique check (domain ~ '^[a-z0-9][a-z0-9-]{0,59}\.myshopify\.com$'),
    inserted_at  timestamptz not null default now()
);

-- The container a storefront knows as `shared_inventory_id`. Whoever changes anything of a shop locks this row first:
-- so changes of one shop have one order, which is what `version` counts.
create table shared_inventories (
    id       bigint generated always as identity primary key,
    shop_id  bigint not null unique references shops,
    version  bigint not null default 0,
    entries  bigint not null default 0
);
comment on column shared_inventories.version is 'Grows with every change: ETag and event id of the storefront.';
comment on column shared_inventories.entries is 'Entries in the ledger of the shop, and the id of the last.';

create table api_keys (
    id           bigint generated always as identity primary key,
    shop_id      bigint not null references shops,
    hash         bytea not null unique check (length(hash) = 32),
    sealed       bytea not null,
    scopes       text[] not null
                 check (scopes <@ array['read_inventory', 'write_inventory', 'read_pools', 'write_pools']),
    active       boolean not null default true,
    inserted_at  timestamptz not null default now()
);
comment on column api_keys.sealed is 'The key, encrypted, so that its shop may look at it again.';
create unique index one_active_key_a_shop on api_keys (shop_id) where active;

-- An agent that showed a key and was given an identity in exchange. It lives and dies with the key.
create table agent_registrations (
    id           text primary key check (id ~ '^reg_[A-Za-z0-9_-]{22}$'),
    shop_id      bigint not null references shops,
    api_key_id   bigint not null unique references api_keys,
    hash         bytea not null unique check (length(hash) = 32),
    inserted_at  timestamptz not null default now()
);
comment on column agent_registrations.hash is 'SHA-256 of the id: what key rings look up.';

create table signing_keys (
    kid          text primary key,
    sealed       bytea not null,
    inserted_at  timestamptz not null default now()
);
comment on table signing_keys is 'Keys that tokens are signed with, encrypted; the newest that is old enough signs.';

create type pool_status as enum ('active', 'paused', 'archived');

create table pools (
    id              bigint generated always as identity primary key,
    shop_id         bigint not null references shops,
    name            text not null check (name <> '' and name = btrim(name) and length(name) <= 100),
    unit            text not null check (unit <> '' and unit = btrim(unit) and length(unit) <= 20),
    on_hand         bigint not null default 0,
    held            bigint not null default 0 check (held >= 0),
    buffer          bigint not null default 0 check (buffer >= 0),
    low_stock_at    bigint check (low_stock_at >= 0),
    allow_negative  boolean not null default false,
    status          pool_status not null default 'active',
    version         bigint not null,
    entries         bigint not null default 0,
    inserted_at     timestamptz not null default now(),
    unique (shop_id, id)
) with (fillfactor = 50);
comment on column pools.on_hand is 'Counted by the ledger''s trigger; nothing else may write it.';
comment on column pools.version is 'Version of the shop at which the pool, or what draws on it, changed last.';
create unique index pool_names on pools (shop_id, lower(name)) where status <> 'archived';

create table variants (
    shop_id  bigint not null references shops,
    gid      text not null check (gid ~ '^gid://[A-Za-z0-9_-]+/ProductVariant/[0-9]{1,20}$'),
    sku      text,
    title    text,
    version  bigint not null,
    primary key (shop_id, gid)
);
comment on column variants.version is 'Version of the shop at which the variant was linked or unlinked last.';
create index variants_by_version on variants (shop_id, version);

create table members (
    shop_id         bigint not null,
    pool_id         bigint not null,
    variant_gid     text not null,
    units_per_sale  bigint not null check (units_per_sale between 1 and 1000000000),
    primary key (pool_id, variant_gid),
    foreign key (shop_id, pool_id) references pools (shop_id, id),
    foreign key (shop_id, variant_gid) references variants
);
create index members_of_variant on members (shop_id, variant_gid);

-- What a storefront is told: how many of a variant can be sold, over all the pools it draws on. Null, and not told,
-- while one of them is not active.
create view availability with (security_invoker = true) as
    select members.shop_id, variant_gid,
           case when bool_and(status = 'active')
                then min(greatest(0, on_hand - held - buffer) / units_per_sale) end as quantity
      from members join pools on pools.id = members.pool_id
     group by members.shop_id, variant_gid;

create type entry_kind as enum ('sale', 'cancel', 'restock', 'set', 'adjust', 'transfer', 'hold', 'release',
                                'external_edit', 'reconcile', 'import', 'revert');

create table ledger (
    shop_id          bigint not null,
    id               bigint not null,
    pool_id          bigint not null,
    seq              bigint not null,
    kind             entry_kind not null,
    delta            bigint not null,
    held_delta       bigint not null,
    balance_after    bigint not null,
    held_after       bigint not null check (held_after >= 0),
    below_zero       boolean not null,
    version          bigint not null,
    actor            text not null check (actor in ('agent', 'staff', 'platform', 'system')),
    actor_id         bigint,
    source           text not null,
    source_ref       text,
    reason           text,
    idempotency_key  text,
    reverts_id       bigint,
    hold_id          bigint,
    created_at       timestamptz not null,
    primary key (shop_id, id),
    unique (pool_id, seq),
    foreign key (shop_id, pool_id) references pools (shop_id, id),
    foreign key (shop_id, reverts_id) references ledger,
    -- What was promised stays: no agent takes what is not there, or what is held for somebody else. Only facts may,
    -- and pools that allow it.
    constraint nothing_is_promised_twice check (
        balance_after >= held_after or (delta >= 0 and held_delta <= 0) or below_zero
        or kind in ('sale', 'cancel', 'external_edit', 'reconcile'))
);
comment on column ledger.below_zero is 'Whether the pool allowed a negative quantity at the time.';
create index ledger_of_pool_in_time on ledger (pool_id, created_at, seq);
create unique index reverted_once on ledger (shop_id, reverts_id) where reverts_id is not null;

create table holds (
    shop_id      bigint not null references shops,
    id           bigint not null,
    reference    text,
    expires_at   timestamptz not null,
    released_at  timestamptz,
    inserted_at  timestamptz not null,
    primary key (shop_id, id)
);
comment on column holds.id is 'The id of the first entry it made in the ledger.';
create index holds_to_expire on holds (expires_at) where released_at is null;
create index holds_of_shop on holds (shop_id, expires_at) where released_at is null;

create table hold_lines (
    shop_id   bigint not null,
    hold_id   bigint not null,
    pool_id   bigint not null,
    quantity  bigint not null check (quantity > 0),
    primary key (shop_id, hold_id, pool_id),
    foreign key (shop_id, hold_id) references holds,
    foreign key (shop_id, pool_id) references pools (shop_id, id)
);
create index hold_lines_of_pool on hold_lines (pool_id);

create table idempotency_keys (
    shop_id      bigint not null references shops,
    key          text not null,
    fingerprint  bytea not null,
    answer       bytea not null,
    created_at   timestamptz not null default now(),
    primary key (shop_id, key)
);
create index idempotency_keys_by_age on idempotency_keys (created_at);

-- The balance is the sum of the ledger because nothing but the ledger moves it.
create function count_stock() returns trigger language plpgsql security definer
    set search_path = pg_catalog, public, pg_temp as $$
begin
    update pools set on_hand = on_hand + change.delta, held = held + change.held_delta,
                     entries = pools.entries + change.entries, version = change.version
      from (select pool_id, sum(delta) as delta, sum(held_delta) as held_delta, count(*) as entries,
                   max(version) as version
              from fresh group by pool_id) as change
     where pools.id = change.pool_id;
    if exists (select from pools
                 join (select distinct on (pool_id) pool_id, seq, balance_after, held_after
                         from fresh order by pool_id, seq desc) as last on last.pool_id = pools.id
                where (entries, on_hand, held) <> (seq, balance_after, held_after)) then
        raise exception 'these entries do not continue the ledger' using errcode = 'integrity_constraint_violation';
    end if;
    return null;
end $$;
create trigger count_stock after insert on ledger
    referencing new table as fresh for each statement execute function count_stock();

create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception 'the ledger is append-only' using errcode = 'integrity_constraint_violation';
end $$;
create trigger append_only before update or delete or truncate on ledger
    for each statement execute function refuse_change();

do $$
declare
    each text;
begin
    foreach each in array array['shared_inventories', 'api_keys', 'agent_registrations', 'pools', 'variants', 'members',
                                'ledger', 'holds', 'hold_lines', 'idempotency_keys'] loop
        execute format('alter table %I enable row level security', each);
        execute format('create policy own_shop on %I to holdfast_shop using (shop_id = (select current_shop()))', each);
    end loop;
end $$;
alter table shops enable row level security;
create policy own_shop on shops to holdfast_shop using (id = (select current_shop()));
alter table signing_keys enable row level security;

grant select on shops, shared_inventories, pools, variants, members, availability, ledger, holds, hold_lines,
                idempotency_keys to holdfast_shop;
grant update (version, entries) on shared_inventories to holdfast_shop;
grant insert (shop_id, name, unit, buffer, low_stock_at, allow_negative, version) on pools to holdfast_shop;
grant update (name, unit, buffer, low_stock_at, allow_negative, status, version) on pools to holdfast_shop;
grant insert, update on variants to holdfast_shop;
grant insert, update, delete on members to holdfast_shop;
grant insert on ledger, hold_lines, idempotency_keys to holdfast_shop;
grant insert, update (released_at) on holds to holdfast_shop;
