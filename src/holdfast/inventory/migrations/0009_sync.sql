-- Levels out: what is wanted of each level at the storefront platform, and the calls that bring it about.
--
-- A level is `available` at the platform as far as is known. Of that, our calls and the orders that were counted explain
-- `expected`. What is left is a sale that was not told yet, or an edit by somebody else: it is kept on top of what the
-- pools have for the level (`target`), until it is explained, or is taken as an edit.

alter table levels
    add column target bigint check (target >= 0),
    add column expected bigint,
    add column wanted bigint generated always as (
        case when expected is not null then least(greatest(target + available - expected, 0), 1000000000) end) stored,
    add column push_id bigint,
    add column pushed_from bigint,
    add column pushed_to bigint,
    add column pushed_at timestamptz,
    add column suspect_at timestamptz,
    add column read_again boolean not null default false,
    add column parked text check (length(parked) <= 500),
    add column caused_at timestamptz,
    add column brisk int not null default 0,
    add check ((push_id is null) = (pushed_to is null) and (push_id is null) = (pushed_from is null));
comment on column levels.target is 'What the pools have for it; null: it is not ours to set.';
comment on column levels.pushed_at is 'When it was pushed last, by the clock of the database.';
comment on column levels.suspect_at is 'When what is not explained by then is taken as an edit by somebody else.';
comment on column levels.parked is 'Why it is not pushed any more until somebody asks for it.';
comment on column levels.caused_at is 'When the service was told of the first cause of what is wanted and not pushed yet.';
comment on column levels.brisk is 'Pushes in a row for which no pool had changed.';
create index levels_to_push on levels (shop_id, pushed_at nulls first)
    where wanted <> available and push_id is null and parked is null and not read_again;
create index levels_unplanned on levels (shop_id, item_gid) where expected is null;
create index levels_to_read on levels (shop_id) where read_again;
create index levels_suspect on levels (shop_id, suspect_at) where suspect_at is not null;
create index levels_of_push on levels (push_id) where push_id is not null;

create table syncs (
    shop_id          bigint primary key references shops,
    planned_version  bigint not null default -1,
    planned_entries  bigint not null default 0,
    planned_changes  bigint not null default -1,
    due_at           timestamptz default now(),
    leased_until     timestamptz,
    attempts         int not null default 0,
    error            text check (length(error) <= 1000)
);
comment on column syncs.planned_version is 'The version of the shop up to which targets are reckoned.';
comment on column syncs.due_at is 'When to look at the shop again, whether or not its pools changed.';
comment on column syncs.leased_until is 'Until when one process alone attends to the shop.';
create index syncs_due on syncs (due_at) where due_at is not null;

-- A call that sets levels. It is repeated with the same key until its outcome is known: so it counts once.
create table pushes (
    id           bigint generated always as identity primary key,
    shop_id      bigint not null references shops,
    key          uuid not null default gen_random_uuid(),
    inserted_at  timestamptz not null default now()
);
create unique index one_push_a_shop on pushes (shop_id);
alter table levels add foreign key (push_id) references pushes;

-- From the webhook that caused a change until the platform has the level. One row for each cause and call.
create table sync_lags (
    shop_id   bigint not null references shops,
    pushed_at timestamptz not null default clock_timestamp(),
    seconds   real not null
);
create index sync_lags_of_shop on sync_lags (shop_id, pushed_at);
create index sync_lags_by_age on sync_lags (pushed_at);

-- What caused an entry outside, if the platform told of it: when the service heard of that.
alter table ledger add column heard_at timestamptz;
alter table ledger alter column heard_at set default nullif(current_setting('holdfast.heard_at', true), '')::timestamptz;
comment on column ledger.heard_at is 'When the webhook was received that caused it; null for other causes.';

alter table pools add column policy text not null default 'adopt' check (policy in ('adopt', 'enforce', 'flag'));
comment on column pools.policy is 'What becomes of quantities that somebody else sets at the platform.';
grant insert (policy), update (policy) on pools to holdfast_shop;

do $$
declare
    each text;
begin
    foreach each in array array['syncs', 'pushes', 'sync_lags'] loop
        execute format('alter table %I enable row level security', each);
        execute format('create policy own_shop on %I to holdfast_shop using (shop_id = (select current_shop()))', each);
        execute format('grant select, insert, update, delete on %I to holdfast_shop', each);
    end loop;
end $$;
