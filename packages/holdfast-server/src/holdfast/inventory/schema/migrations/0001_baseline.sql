-- Replaces the migrations up to 0027_undone_draws.sql, the last of the version of 2026-11-25 (70cc5f1).

-- Shops, their keys, their pools, and the ledger by which all stock is counted.
--
-- Two walls keep shops apart: every statement names its shop, and row-level security shows the role `holdfast_shop`,
-- which every request's transaction takes on, only the rows of the shop in `holdfast.shop`.
--
-- Row-level security adds the shop to what a statement asks for. So the index of a look-up begins with the shop: one that
-- does not is combined with one that holds everything of the shop, and all of that is read. An expression is computed
-- only for rows that row-level security has let pass, and so are comparisons of an enum, which are not leakproof: what a
-- look-up compares is stored in a column of its own.

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

create function parts(shop bigint, whole text) returns bigint[] language sql immutable strict parallel safe as
    $$ select array(select hashtextextended(substr(whole, n, 3), shop)
                      from generate_series(1, length(whole) - 2) as n) $$;
comment on function parts is 'A number for each three characters of a text. The same characters differ between shops.';

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

-- The answers of calls that may come again with their idempotency key.
create table idempotency_answers (
    id           bytea primary key check (length(id) = 32),
    fingerprint  bytea not null check (length(fingerprint) = 32),
    sealed       bytea not null,
    inserted_at  timestamptz not null default now(),
    shop_id      bigint not null default current_shop() references shops,
    account      text
);
comment on column idempotency_answers.id is 'SHA-256 of the shop and the key.';
comment on column idempotency_answers.fingerprint is 'SHA-256 of the call.';
comment on column idempotency_answers.sealed is 'The answer, encrypted; empty for calls before this migration.';
comment on column idempotency_answers.account is 'Whose it is, if it is large: of each, so many bytes are kept.';
create index idempotency_answers_by_age on idempotency_answers (inserted_at);
create index idempotency_answers_large on idempotency_answers (account, inserted_at) where account is not null;

-- Who works in the console of a shop: people whom the storefront platform vouches for (its number of them is their
-- `staff_id`), and people who sign in by a link to their address. Their sessions are in the tables of accounts, which
-- belong to no shop: no transaction of a shop can read them.
create table merchants (
    id               bigint generated always as identity primary key,
    shop_id          bigint not null references shops,
    email            text unique check (length(email) between 3 and 254),
    staff_id         text check (length(staff_id) between 1 and 64),
    proved_at        timestamptz,
    inserted_at      timestamptz not null default now(),
    wants_low_stock  boolean not null default true,
    language         text check (length(language) <= 10),
    unique (shop_id, staff_id),
    check (num_nonnulls(email, staff_id) = 1)
);
comment on column merchants.proved_at is 'When the owner of the address first followed a link; with a staff_id, when the platform vouched first.';
comment on column merchants.wants_low_stock is 'Whether mails about low stock are sent to the address.';
comment on column merchants.language is 'That in which the merchant was told of low stock to be wanted or not; null: English.';
create index merchants_of_shop on merchants (shop_id);

-- Pools, what draws on them, and their ledger.

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
    policy          text not null default 'adopt' check (policy in ('adopt', 'enforce', 'flag')),
    name_key        text generated always as (lower(name)) stored,
    status_key      text generated always as (
        case when status = 'active' then 'active' when status = 'paused' then 'paused' else 'archived' end) stored,
    is_low          boolean not null generated always as (
        coalesce(greatest(0, on_hand - held - buffer) <= low_stock_at, false)) stored,
    unique (shop_id, id)
) with (fillfactor = 50);
comment on column pools.on_hand is 'Counted by the ledger''s trigger; nothing else may write it.';
comment on column pools.version is 'Version of the shop at which the pool, or what draws on it, changed last.';
comment on column pools.policy is 'What becomes of quantities that somebody else sets at the platform.';
comment on column pools.name_key is 'Two pools that are not archived have different ones.';
comment on column pools.status_key is 'The status as a text, which an index is searched for.';
comment on column pools.is_low is 'Whether at most `low_stock_at` is available.';
create unique index pool_names on pools (shop_id, name_key) where status <> 'archived';
create index pools_by_status on pools (shop_id, status_key, id);
-- The pools that run low are found down an index, however many others a shop has. Only a pool that begins or ceases to
-- run low is written to it. Without its condition on the status, PostgreSQL would read the index of names instead.
create index low_pools on pools (shop_id, id) where is_low and status <> 'archived';

create table variants (
    shop_id   bigint not null references shops,
    gid       text not null check (gid ~ '^gid://[A-Za-z0-9_-]+/ProductVariant/[0-9]{1,20}$'),
    sku       text,
    title     text,
    version   bigint not null,
    sku_key   text generated always as (lower(sku)) stored,
    searched  text generated always as (lower(coalesce(title, '') || ' ' || coalesce(sku, ''))) stored,
    primary key (shop_id, gid)
);
comment on column variants.version is 'Version of the shop at which the variant was linked or unlinked last.';
comment on column variants.searched is 'What is searched for a part of it.';
create index variants_by_version on variants (shop_id, version);
create index variants_of_sku on variants (shop_id, sku_key) where sku_key is not null;
-- The order in which lists show what is found.
create index variants_by_length on variants (shop_id, length(title), gid);

create table members (
    shop_id         bigint not null,
    pool_id         bigint not null,
    variant_gid     text not null,
    units_per_sale  bigint not null check (units_per_sale between 1 and 1000000000),
    primary key (pool_id, variant_gid),
    foreign key (shop_id, pool_id) references pools (shop_id, id),
    foreign key (shop_id, variant_gid) references variants
);
-- A change of stock reads what draws on its pools from these two indexes alone. Members change seldom, so the indexes
-- stay readable without the table.
create index members_of_variant on members (shop_id, variant_gid) include (pool_id);
create index members_of_pool on members (shop_id, pool_id, variant_gid) include (units_per_sale);

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
    heard_at         timestamptz default nullif(current_setting('holdfast.heard_at', true), '')::timestamptz,
    by_variant       jsonb,
    primary key (shop_id, id),
    unique (pool_id, seq),
    foreign key (shop_id, pool_id) references pools (shop_id, id),
    foreign key (shop_id, reverts_id) references ledger,
    -- What was promised stays: no agent takes what is not there, or what is held for somebody else. Only facts may,
    -- and pools that allow it. A sale that an agent or a person records is a decision: it may take what its own hold
    -- kept, as far as that is there.
    constraint nothing_is_promised_twice check (
        balance_after >= held_after or (delta >= 0 and held_delta <= 0) or below_zero
        or kind in ('cancel', 'external_edit', 'reconcile')
        or (kind = 'sale' and (actor in ('platform', 'system') or (delta >= held_delta and balance_after >= 0))))
);
comment on column ledger.below_zero is 'Whether the pool allowed a negative quantity at the time.';
comment on column ledger.heard_at is 'When the webhook was received that caused it; null for other causes.';
comment on column ledger.by_variant is
    'Units that each variant took of the pool, by its gid; below zero: they came back. Null: it was for no variant.';
create index ledger_of_pool on ledger (shop_id, pool_id, created_at, seq);
create unique index reverted_once on ledger (shop_id, reverts_id) where reverts_id is not null;

-- Who drew what. The ledger says for which variants an entry took something; a trigger keeps sums of a day. So what drew
-- on a pool in a month is read from some rows, however many entries the month has.
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
-- Sums of days that no page shows are forgotten.
create index drawn_by_day on drawn (day);

create table holds (
    shop_id      bigint not null references shops,
    id           bigint not null,
    reference    text,
    expires_at   timestamptz not null,
    released_at  timestamptz,
    inserted_at  timestamptz not null,
    sold         boolean not null default false,
    primary key (shop_id, id),
    constraint sold_holds_have_ended check (released_at is not null or not sold)
);
comment on column holds.id is 'The id of the first entry it made in the ledger.';
comment on column holds.sold is 'Whether it ended by a sale.';
create index holds_active on holds (shop_id, id) where released_at is null;
create index holds_to_expire on holds (expires_at) where released_at is null;
create index holds_ended on holds (released_at) where released_at is not null;

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

-- Shops whose merchants have installed the app on the storefront platform, and the tokens with which the service acts for
-- them there. A shop that an operator has added has neither, until its merchant installs the app.

create table installs (
    shop_id              bigint primary key references shops,
    scopes               text[] not null,
    installed_at         timestamptz not null default now(),
    uninstalled_at       timestamptz,
    redacted_at          timestamptz check (redacted_at is null or uninstalled_at is not null),
    broken               text check (length(broken) <= 500),
    subscription_errors  text[] not null default '{}'
);
comment on column installs.installed_at is 'When it was installed last, by the clock of the database.';
comment on column installs.redacted_at is 'When the platform asked to delete the shop; its rows are deleted from then on.';
comment on column installs.broken is 'Why the merchant must open or install the app again; null: nothing is wrong.';
comment on column installs.subscription_errors is 'What the platform will not tell of, and why.';
create index installs_uninstalled on installs (uninstalled_at) where uninstalled_at is not null;

create table platform_tokens (
    shop_id             bigint primary key references installs,
    sealed              bytea not null,
    expires_at          timestamptz,
    refresh_expires_at  timestamptz,
    generation          bigint not null default 1,
    leased_until        timestamptz
);
comment on column platform_tokens.sealed is 'The access token and the refresh token, encrypted.';
comment on column platform_tokens.expires_at is 'When the access token ends; null: it does not end by itself.';
comment on column platform_tokens.generation is 'Grows with every new token.';
comment on column platform_tokens.leased_until is 'Until when one process alone refreshes the tokens.';

-- What the storefront platform told of a shop (webhooks), each once, until it is handled. Of its body, only the fields
-- are here that are needed, and nothing of customers.
create table webhooks (
    id            bigint generated always as identity primary key,
    shop_id       bigint not null references shops,
    webhook_id    text not null check (length(webhook_id) between 1 and 100),
    event_id      text check (length(event_id) <= 100),
    topic         text not null,
    triggered_at  timestamptz,
    payload       bytea,
    received_at   timestamptz not null default now(),
    handled_at    timestamptz,
    due_at        timestamptz default now(),
    attempts      int not null default 0,
    error         text,
    lease_id      uuid,
    unique (shop_id, webhook_id),
    check (handled_at is null or (due_at is null and payload is null))
) with (fillfactor = 70);
comment on column webhooks.webhook_id is 'The platform''s id of the delivery, the same when it comes again.';
comment on column webhooks.event_id is 'The platform''s id of the cause, which deliveries of several topics share.';
comment on column webhooks.due_at is 'When it is to be handled, or tried again; null: it was handled, or is parked.';
-- By its lease, a process that stalled, and whose work another one has taken since, can store nothing when it wakes.
comment on column webhooks.lease_id is 'The lease under which a process handles it, or did when it ended; null: none.';
create index webhooks_due on webhooks (due_at) where due_at is not null;
create index webhooks_handled on webhooks (handled_at) where handled_at is not null;
create index webhooks_parked on webhooks (id) where due_at is null and handled_at is null;

-- What a shop has at the storefront platform: its variants, its locations, and how many of each are there (levels). It is
-- imported once, and then kept right by webhooks. Rows are found by the platform's ids.

create table catalogs (
    shop_id       bigint primary key references shops,
    changes       bigint not null default 0,
    -- At one location: the same quantity at several locations is sold several times.
    rule          text not null default 'one' check (rule in ('all', 'one', 'shares')),
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
    searched       text generated always as (
        lower(product_title || ' ' || title || ' ' || coalesce(sku, ''))) stored,
    sku_key        text generated always as (lower(nullif(sku, ''))) stored,
    primary key (shop_id, gid)
) with (fillfactor = 50);
-- Each import writes its number into every row. With room beside the row, no index is written for that.
comment on column catalog_variants.searched is 'What is searched for a part of it.';
create index catalog_variants_of_item on catalog_variants (shop_id, item_gid);
create index catalog_variants_of_product on catalog_variants (shop_id, product_gid);
create index catalog_variants_of_sku on catalog_variants (shop_id, sku_key) where sku_key is not null;
-- The order in which lists show what is found.
create index catalog_variants_by_title on catalog_variants (shop_id, product_title, title, gid);

-- What people call variants, for all that show them: what was said when a variant was linked goes before what the
-- platform says. Variants that were linked by their ids alone are found by the platform's names too.

create function shown_title(product_title text, title text) returns text language sql stable parallel safe as
    $$ select nullif(concat_ws(' · ', nullif(product_title, ''), nullif(nullif(title, ''), 'Default Title')), '') $$;
comment on function shown_title is
    'What people call a variant of the platform. Default Title is its name for the variant of a product that has one.';

create view named_variants with (security_invoker = true) as
    select variants.shop_id, variants.gid, coalesce(variants.title, shown_title(product_title, known.title)) as title,
           coalesce(variants.sku, nullif(known.sku, '')) as sku
      from variants
      left join catalog_variants as known on known.shop_id = variants.shop_id and known.gid = variants.gid;

-- A part of a name, a title or a SKU is found down an index, however much is stored. Each text is cut into its parts of
-- three characters, and an index holds a number for each of them. What has all parts of a text may contain it. The
-- functions that end in `_containing` use these indexes.
--
-- What was written is put into these indexes together, when it is 512 kB; until then each search reads it.
create index pools_by_parts on pools using gin (parts(shop_id, name_key)) with (gin_pending_list_limit = 512);
create index variants_by_parts on variants using gin (parts(shop_id, searched)) with (gin_pending_list_limit = 512);
create index catalog_variants_by_parts on catalog_variants using gin (parts(shop_id, searched))
    with (gin_pending_list_limit = 512);

create table locations (
    shop_id              bigint not null references shops,
    gid                  text not null check (gid ~ '^gid://[A-Za-z0-9_-]+/Location/[0-9]{1,20}$'),
    name                 text not null,
    active               boolean not null,
    share_from           int not null default 0 check (share_from between 0 and 100),
    share_to             int not null default 0 check (share_to between share_from and 100),
    updated_at           timestamptz,
    import_id            bigint not null default 0,
    fulfillment_service  boolean default false,
    primary key (shop_id, gid)
);
comment on column locations.share_to is 'Its share of each quantity, in percent, lies between share_from and this.';
-- What a fulfillment service has is its own to count.
comment on column locations.fulfillment_service is 'Whether a fulfillment service counts what is there; null: not known.';

create view settable_locations with (security_invoker = true) as
    select locations.shop_id, gid, case when rule = 'all' then 0 else share_from end as part_from,
           case when rule = 'all' then 100 else share_to end as part_to
      from locations join catalogs on catalogs.shop_id = locations.shop_id
     where active and (rule = 'all' and fulfillment_service = false or rule <> 'all' and share_from < share_to);
comment on view settable_locations is
    'The locations whose levels are set, each to its part of a quantity: from part_from to part_to percent of it.';

-- Levels out: what is wanted of each level at the storefront platform, and the calls that bring it about.

-- A call that sets or changes levels. It is repeated with the same key until its outcome is known: so it counts once.
-- The key of a call that changes levels is in a column of its own: a process that knows only calls which set levels finds
-- no key, the platform refuses its call as invalid, and the call is left to a process that knows it.
create table pushes (
    id           bigint generated always as identity primary key,
    shop_id      bigint not null references shops,
    key          uuid default gen_random_uuid(),
    inserted_at  timestamptz not null default now(),
    adjust_key   uuid,
    check (num_nonnulls(key, adjust_key) = 1)
);
comment on column pushes.key is 'The key of a call that sets levels.';
comment on column pushes.adjust_key is 'The key of a call that changes levels by differences.';
create unique index one_push_a_shop on pushes (shop_id);

-- A level is `available` at the platform as far as is known. Of that, our calls and the orders that were counted explain
-- `expected`. What is left is a sale that was not told yet, or an edit by somebody else: it is kept on top of what the
-- pools have for the level (`target`), until it is explained, or is taken as an edit.
--
-- What is expected of a level begins with what it was at some moment of the platform. A sale before that moment is in it
-- already, also if the service counts it only later; a sale after it is not, also if the service has counted it already.
create table levels (
    shop_id       bigint not null references shops,
    item_gid      text not null,
    location_gid  text not null,
    gid           text,
    available     bigint not null,
    seen_at       timestamptz,
    import_id     bigint not null default 0,
    target        bigint check (target >= 0),
    expected      bigint,
    wanted        bigint generated always as (
        case when expected is not null then least(greatest(target + available - expected, 0), 1000000000) end) stored,
    push_id       bigint references pushes,
    pushed_from   bigint,
    pushed_to     bigint,
    pushed_at     timestamptz,
    suspect_at    timestamptz,
    read_again    boolean not null default false,
    parked        text check (length(parked) <= 500),
    caused_at     timestamptz,
    brisk         int not null default 0,
    based_at      timestamptz,
    paused        boolean not null default false,
    primary key (shop_id, item_gid, location_gid),
    check ((push_id is null) = (pushed_to is null) and (push_id is null) = (pushed_from is null))
) with (fillfactor = 70);
comment on column levels.available is 'What the platform said last, or took from us.';
comment on column levels.seen_at is 'When that was so, by the platform''s clock, which says whole seconds.';
comment on column levels.target is 'What the pools have for it; null: it is not ours to set.';
comment on column levels.pushed_at is 'When it was pushed last, by the clock of the database.';
comment on column levels.suspect_at is 'When what is not explained by then is taken as an edit by somebody else.';
comment on column levels.parked is 'Why it is not pushed any more until somebody asks for it.';
comment on column levels.caused_at is 'When the service was told of the first cause of what is wanted and not pushed yet.';
comment on column levels.brisk is 'Pushes in a row for which no pool had changed.';
comment on column levels.based_at is 'The moment of the platform with which `expected` began.';
-- It is still followed: what is not explained when the pool goes on may be an edit.
comment on column levels.paused is 'It is not ours to set only because a pool is paused; `expected` goes on.';
create index levels_to_push on levels (shop_id, pushed_at nulls first)
    where wanted <> available and push_id is null and parked is null and not read_again;
create index levels_unplanned on levels (shop_id, item_gid) where expected is null;
create index levels_to_read on levels (shop_id, item_gid, location_gid) where read_again;
create index levels_suspect on levels (shop_id, suspect_at) where suspect_at is not null;
create index levels_of_push on levels (push_id) where push_id is not null;

create table syncs (
    shop_id             bigint primary key references shops,
    planned_version     bigint not null default -1,
    planned_entries     bigint not null default 0,
    planned_changes     bigint not null default -1,
    due_at              timestamptz default now(),
    leased_until        timestamptz,
    attempts            int not null default 0,
    error               text check (length(error) <= 1000),
    numbers             boolean not null default false,
    numbers_error       text check (length(numbers_error) <= 1000),
    numbers_rest_until  timestamptz,
    lease_id            uuid
);
comment on column syncs.planned_version is 'The version of the shop up to which targets are reckoned.';
comment on column syncs.due_at is 'When to look at the shop again, whether or not its pools changed.';
comment on column syncs.leased_until is 'Until when one process alone attends to the shop.';
comment on column syncs.numbers is 'Whether the numbers for the cart check are reckoned.';
comment on column syncs.numbers_error is 'Why none could be written the last time.';
comment on column syncs.lease_id is 'The lease under which a process attends to the shop, or did when it ended; null: none.';
create index syncs_due on syncs (due_at) where due_at is not null;

-- From the webhook that caused a change until the platform has the level. One row for each cause and call.
create table sync_lags (
    shop_id    bigint not null references shops,
    pushed_at  timestamptz not null default clock_timestamp(),
    seconds    real not null
);
create index sync_lags_of_shop on sync_lags (shop_id, pushed_at);
create index sync_lags_by_age on sync_lags (pushed_at);

-- What the cart check reads of a variant: the pools that it draws on, and how much of each can be sold. It is written to
-- a metafield of the variant at the storefront platform, if the merchant has granted the service to do so.
create table cart_numbers (
    shop_id      bigint not null references shops,
    variant_gid  text not null,
    wanted       jsonb not null,
    version      bigint not null,
    written      jsonb,
    digest       text check (length(digest) <= 200),
    written_at   timestamptz,
    read_again   boolean not null default false,
    refused      text check (length(refused) <= 500),
    primary key (shop_id, variant_gid)
) with (fillfactor = 70);
comment on column cart_numbers.wanted is 'Its pools, each as [id, units of one sale, units that can be sold]; [] is not written first.';
comment on column cart_numbers.version is 'The version of the shop at which that was so.';
comment on column cart_numbers.written is 'What the platform has, as far as is known; null: nothing.';
comment on column cart_numbers.digest is 'How the platform names what it has: it is changed from that only.';
comment on column cart_numbers.refused is 'Why the platform does not take it; it is tried again when something else is wanted.';
create index cart_numbers_to_write on cart_numbers (shop_id, written_at nulls first)
    where (read_again or wanted <> coalesce(written, '[]')) and refused is null;
create index cart_numbers_by_age on cart_numbers (shop_id, written_at) where wanted <> '[]' and refused is null;

-- Orders of the storefront platform: what each line has taken of the stock so far. A webhook says how an order is now; what
-- the ledger gets is the difference to what is stored here. So it does not matter how often, how late, or in which order
-- webhooks come. Only orders of which a line drew on a pool are here, with those lines.

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
create index orders_by_moment on orders (shop_id, placed_at);

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

-- Row-level security: a shop's role sees the rows of its own shop.

alter table shops enable row level security;
create policy own_shop on shops to holdfast_shop using (id = (select current_shop()));

do $$
declare
    each text;
begin
    foreach each in array array['shared_inventories', 'api_keys', 'agent_registrations', 'idempotency_answers', 'merchants',
                                'pools', 'variants', 'members', 'links', 'ledger', 'drawn', 'holds', 'hold_lines',
                                'installs', 'platform_tokens', 'webhooks', 'catalogs', 'catalog_variants', 'locations',
                                'levels', 'syncs', 'pushes', 'sync_lags', 'cart_numbers', 'orders', 'order_lines',
                                'order_draws', 'order_catches'] loop
        execute format('alter table %I enable row level security', each);
        execute format('create policy own_shop on %I to holdfast_shop using (shop_id = (select current_shop()))', each);
    end loop;
    -- These belong to no shop.
    foreach each in array array['signing_keys', 'sign_in_links', 'sessions', 'oauth_clients', 'oauth_grants',
                                'oauth_codes', 'oauth_access_tokens', 'oauth_refresh_tokens', 'trusted_auth_keys'] loop
        execute format('alter table %I enable row level security', each);
    end loop;
end $$;

-- What a shop's role may do.

grant select on shops, shared_inventories, pools, variants, members, links, availability, named_variants, ledger, drawn,
                holds, hold_lines, idempotency_answers, merchants, installs, platform_tokens, settable_locations, orders,
                order_lines, order_draws, order_catches to holdfast_shop;
grant select, insert, update, delete on catalogs, catalog_variants, locations, levels, syncs, pushes, sync_lags,
                                        cart_numbers to holdfast_shop;
grant update (version, entries) on shared_inventories to holdfast_shop;
grant insert (id, fingerprint, sealed, account), update (fingerprint, sealed, inserted_at, account)
   on idempotency_answers to holdfast_shop;
grant update (wants_low_stock, language) on merchants to holdfast_shop;
grant insert (shop_id, name, unit, buffer, low_stock_at, allow_negative, version, policy) on pools to holdfast_shop;
grant update (name, unit, buffer, low_stock_at, allow_negative, status, version, policy) on pools to holdfast_shop;
grant insert, update on variants to holdfast_shop;
grant insert, update, delete on members to holdfast_shop;
grant insert on ledger, hold_lines to holdfast_shop;
grant insert, update (released_at, sold) on holds to holdfast_shop;
grant update (broken, subscription_errors) on installs to holdfast_shop;
grant delete, update (sealed, expires_at, refresh_expires_at, generation, leased_until) on platform_tokens to holdfast_shop;
-- Handlers make sure of their lease, and hold the row until they commit. To lock a row needs the right to change it. The
-- error says to those who ask what the judgement of edits waits for why a webhook waits.
grant select (id, shop_id, topic, triggered_at, received_at, handled_at, due_at, attempts, error, lease_id),
      update (lease_id) on webhooks to holdfast_shop;
grant insert on orders, order_lines, order_draws, order_catches to holdfast_shop;
grant update (updated_at, revision) on orders to holdfast_shop;
grant update (taken) on order_lines to holdfast_shop;
grant update (until) on order_catches to holdfast_shop;
