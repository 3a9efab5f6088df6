-- The public log of the order in which an event or a queue handed out its places (docs/events/fairness.md).

alter table events add public_log boolean not null default true;
comment on column events.public_log is 'Whether the order of its registrations is published as a log.';
alter table queues add public_log boolean not null default true;
comment on column queues.public_log is 'Whether the order of its visitors is published as a log.';

alter table registrations add log_number bigint check (log_number > 0), add nonce uuid, add logged_as text;
comment on column registrations.log_number is 'Its number in the order of arrivals of the event; given at settlement.';
comment on column registrations.nonce is 'The 16 random bytes of the commitment in the log; null: none, or erased.';
comment on column registrations.logged_as is
    'The public id in the commitment, if the registration has moved to another account since.';
alter table queue_visitors add nonce uuid;
comment on column queue_visitors.nonce is 'The 16 random bytes of the commitment in the log.';

create table logs (
    id bigint generated always as identity primary key,
    event_id bigint references events on delete cascade,
    queue_id bigint references queues on delete cascade,
    generation integer not null default 1 check (generation > 0),
    arrivals bigint not null default 0 check (arrivals >= 0),
    moved bigint not null default 0 check (moved >= 0),
    removed bigint not null default 0 check (removed >= 0),
    closed_at timestamptz,
    inserted_at timestamptz not null default now(),
    constraint a_log_is_of_an_event_or_a_queue check (num_nonnulls(event_id, queue_id) = 1),
    unique (event_id, generation),
    unique (queue_id, generation)
) with (fillfactor = 50);
comment on table logs is 'Public logs. A further generation follows a restored backup, or a log that was switched off.';
comment on column logs.arrivals is 'The number of the last arrival of an event. The numbers of a queue are its tickets.';
comment on column logs.moved is 'How often the organizer gave a registration another status. Generations count on.';
comment on column logs.removed is 'How many registrations the organizer removed. Generations count on.';
create unique index one_open_log_an_event on logs (event_id) where closed_at is null;
create unique index one_open_log_a_queue on logs (queue_id) where closed_at is null;

create type log_entry_kind as enum ('open', 'arrivals', 'change', 'freeze', 'draw', 'release', 'close');

-- Written by the transaction that it tells of, under the lock of the event or queue, so ids of a log are in order.
create table log_pending (
    id bigint generated always as identity,
    log_id bigint not null references logs on delete cascade,
    kind log_entry_kind not null,
    at timestamptz not null default clock_timestamp(),
    details jsonb,
    first_number bigint,
    received_at timestamptz[],
    user_ids bigint[],
    visitor_ids text[],
    nonces uuid[],
    outcomes registration_status[],
    cut timestamptz,
    primary key (log_id, id),
    -- PostgreSQL reads a check anew for each statement, so there is only this short one.
    constraint arrivals_have_no_details check ((first_number is null) = (details is not null))
);
alter table log_pending alter received_at set storage external, alter user_ids set storage external,
    alter nonces set storage external, alter outcomes set storage external;
comment on table log_pending is 'What is to be logged. The arrays have an element for each arrival, in their order.';
comment on column log_pending.cut is 'All registrations that the event received up to this time are logged with it.';

create table log_heads (
    log_id bigint primary key references logs on delete cascade,
    origin text not null unique check (length(origin) between 1 and 500),
    size bigint not null check (size > 0),
    root bytea not null check (length(root) = 32),
    arrivals bigint not null default 0 check (arrivals >= 0),
    signed_size bigint not null default 0,
    checkpoint text,
    sealed_at timestamptz not null,
    constraint only_what_is_sealed_is_signed check (signed_size between 0 and size),
    constraint a_signed_size_has_a_checkpoint check ((signed_size > 0) = (checkpoint is not null))
) with (fillfactor = 20);
comment on table log_heads is 'The head of each log: the sealed tree, and the last signed checkpoint.';
comment on column log_heads.arrivals is 'The number of the last sealed arrival, or what it was before the log began.';
create index log_heads_to_sign on log_heads (log_id) where signed_size < size;

create table log_tiles (
    log_id bigint not null references logs on delete cascade,
    level smallint not null check (level between 0 and 63),
    number bigint not null check (number >= 0),
    hashes bytea not null check (length(hashes) % 32 = 0 and length(hashes) between 32 and 8192),
    primary key (log_id, level, number)
);
alter table log_tiles alter hashes set storage external;
comment on table log_tiles is 'Hashes of the tree, as c2sp.org/tlog-tiles has them. The last tile of a level grows.';

create table log_entries (
    log_id bigint not null references logs on delete cascade,
    number bigint not null check (number >= 0),
    arrivals_before bigint not null check (arrivals_before >= 0),
    entries bytea not null,
    primary key (log_id, number)
);
comment on table log_entries is 'Entries of the log in bundles of 256, as c2sp.org/tlog-tiles has them.';
comment on column log_entries.arrivals_before is 'The number of the last arrival before the bundle.';
create index log_entries_by_arrival on log_entries (log_id, arrivals_before, number);

create table log_keys (
    id bigint generated always as identity primary key,
    public_key bytea not null unique check (length(public_key) = 32),
    sealed bytea not null,
    inserted_at timestamptz not null default now()
);
comment on table log_keys is 'Ed25519 keys that heads and receipts are signed with, encrypted. The last one signs.';

-- What is open now gets a log that begins here. Who came before has no number in it.
insert into logs (event_id) select id from events where published and cancelled_at is null and datetime > now();
insert into logs (queue_id) select id from queues where deleted_at is null and (ends_at > now()) is not false;
insert into log_pending (log_id, kind, details)
select logs.id, 'open',
       jsonb_build_object('of', 'event', 'capacity', capacity, 'waiting_places', waitinglist_capacity,
                          'seated', registered_count, 'waiting', waitlisted_count, 'first_number', 1)
  from logs join events on events.id = event_id;
insert into log_pending (log_id, kind, details)
select logs.id, 'open', jsonb_build_object('of', 'queue', 'first_number', tickets + 1, 'released', serving)
  from logs join queues on queues.id = queue_id;
