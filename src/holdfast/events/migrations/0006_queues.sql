-- Virtual waiting rooms: queues, who waits in them, and when they were let go.

-- A line is two numbers. Whoever joins gets the next ticket; serving is the last ticket that was released. Nobody leaves
-- the line but through its front, so position and length are subtractions, however many wait.
create table queues (
    id                 bigint generated always as identity primary key,
    organizer_id       bigint not null references users,
    title              text not null,
    description        text,
    active             boolean not null,
    paused_at          timestamptz,
    starts_at          timestamptz,
    ends_at            timestamptz,
    max_queue_size     integer check (max_queue_size > 0),
    release_rate       integer not null check (release_rate > 0),
    target_url         text not null check (target_url ~ '^https?://'),
    token_ttl_minutes  integer not null check (token_ttl_minutes > 0),
    tickets            bigint not null default 0,
    serving            bigint not null default 0,
    paced_at           timestamptz not null default clock_timestamp(),
    rated_at           timestamptz not null default clock_timestamp(),
    inserted_at        timestamptz not null default now(),
    deleted_at         timestamptz,
    constraint paused_since_a_moment check (active = (paused_at is null)),
    constraint starts_before_it_ends check (starts_at < ends_at),
    constraint serves_only_tickets_handed_out check (serving >= 0 and serving <= tickets)
) with (fillfactor = 20); -- the row changes with every batch of joins: room to do so in place
comment on column queues.paced_at is 'The moment up to which the rate has been spent.';
comment on column queues.rated_at is 'Since when the present rate applies.';
comment on column queues.deleted_at is 'When the queue was deleted; its visitors are removed a little later.';
create index queues_of_organizer on queues (organizer_id, id) where deleted_at is null;

create table queue_visitors (
    queue_id     bigint not null references queues,
    visitor_id   text not null check (length(visitor_id) between 1 and 255),
    ticket       bigint not null check (ticket > 0),
    joined_at    timestamptz not null default clock_timestamp(),
    token_id     text,
    issued_at    timestamptz,
    expires_at   timestamptz,
    use_count    integer not null default 0 check (use_count >= 0),
    consumed_at  timestamptz,
    primary key (queue_id, visitor_id),
    constraint a_ticket_belongs_to_one_visitor unique (queue_id, ticket),
    constraint a_token_has_its_times check ((token_id is null) = (issued_at is null)
                                        and (token_id is null) = (expires_at is null)),
    constraint only_a_token_is_used check (token_id is not null or (use_count = 0 and consumed_at is null))
);
comment on column queue_visitors.token_id is 'Of the release token, once it was picked up.';

-- One row each time tickets were released: they are not found in the visitors, who are not touched by it.
create table queue_releases (
    queue_id      bigint not null references queues,
    first_ticket  bigint not null,
    last_ticket   bigint not null,
    released_at   timestamptz not null,
    primary key (queue_id, last_ticket),
    check (first_ticket <= last_ticket)
);
create index queue_releases_in_time on queue_releases (queue_id, released_at);

create table queue_signing_keys (
    kid          text primary key,
    sealed       bytea not null,
    inserted_at  timestamptz not null default now()
);
comment on table queue_signing_keys is 'Keys that release tokens are signed with, encrypted.';
