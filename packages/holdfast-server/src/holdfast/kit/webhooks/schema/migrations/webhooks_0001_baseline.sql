-- Webhooks: the addresses that programs are told at, the messages for them, and the delivery of each.

create table webhook_endpoints (
    id               bigint generated always as identity primary key,
    tenant_id        bigint not null,
    url              text not null check (length(url) <= 2000),
    types            text[] not null check (cardinality(types) <= 100),
    is_ordered       boolean not null,
    status           text not null default 'active' check (status in ('active', 'paused', 'failing')),
    sealed           bytea not null,
    language         text check (length(language) <= 10),
    created_at       timestamptz not null default now(),
    failing_since    timestamptz,
    failures         integer not null default 0,
    is_slow          boolean not null default false,
    next_due_at      timestamptz,
    leased_until     timestamptz not null default now(),
    lease_id         uuid,
    attempts         integer not null default 0
);
comment on table webhook_endpoints is 'Addresses at which programs of a tenant are told what happened.';
comment on column webhook_endpoints.types is 'The types of messages that it gets; empty: all.';
comment on column webhook_endpoints.is_ordered is 'Whether a message waits until the one before it, of the same subject, is delivered.';
comment on column webhook_endpoints.status is 'paused: by a person or by the receiver, it gets nothing; failing: for days no message could be delivered, so they wait.';
comment on column webhook_endpoints.sealed is 'Its secrets, and until when each of them signs.';
comment on column webhook_endpoints.language is 'The language of mails about it; null: unknown.';
comment on column webhook_endpoints.failing_since is 'The first failure after the last success.';
comment on column webhook_endpoints.failures is 'Batches without a delivery since the last delivery.';
comment on column webhook_endpoints.is_slow is 'Whether a message took long in its last turn.';
comment on column webhook_endpoints.next_due_at is 'When its next delivery is due; null: none waits. While it is leased: the end of the lease, or earlier if more has come.';
comment on column webhook_endpoints.leased_until is 'Until then one process sends to it; or, without a lease, nobody does, after a failure.';
comment on column webhook_endpoints.attempts is 'How often it was leased.';
create index webhook_endpoints_of_tenant on webhook_endpoints (tenant_id);
create index webhook_endpoints_due on webhook_endpoints (next_due_at) where status = 'active' and next_due_at is not null;
create index webhook_endpoints_leased on webhook_endpoints (tenant_id) where lease_id is not null;

create table webhook_messages (
    id             bigint generated always as identity primary key,
    tenant_id      bigint not null,
    endpoint_id    bigint references webhook_endpoints on delete cascade,
    type           text not null,
    subject        text not null,
    data           jsonb not null,
    created_at     timestamptz not null default clock_timestamp(),
    is_fanned_out  boolean not null default false
);
comment on table webhook_messages is 'What happened, stored by the transaction in which it happened. Kept for 30 days.';
comment on column webhook_messages.endpoint_id is 'The only endpoint that gets it; null: all of the tenant that want its type.';
comment on column webhook_messages.subject is 'What it is about. Messages about one subject are numbered, and have an order.';
comment on column webhook_messages.is_fanned_out is 'Whether its deliveries are stored.';
create index webhook_messages_new on webhook_messages (tenant_id, id) where not is_fanned_out;
create index webhook_messages_of_tenant on webhook_messages (tenant_id, created_at);
create index webhook_messages_of_endpoint on webhook_messages (endpoint_id) where endpoint_id is not null;
create index webhook_messages_by_age on webhook_messages (created_at);

create table webhook_subjects (
    id           bigint generated always as identity primary key,
    endpoint_id  bigint not null references webhook_endpoints on delete cascade,
    subject      text not null,
    last_number  bigint not null,
    unique (endpoint_id, subject)
);
comment on table webhook_subjects is 'The last number of a message about a subject, for each endpoint.';

create table webhook_deliveries (
    subject_id   bigint not null references webhook_subjects on delete cascade,
    number       bigint not null,
    endpoint_id  bigint not null references webhook_endpoints on delete cascade,
    message_id   bigint not null references webhook_messages on delete cascade,
    status       text not null default 'waiting' check (status in ('waiting', 'delivered', 'failed')),
    due_at       timestamptz,
    attempts     integer not null default 0,
    ended_at     timestamptz,
    primary key (subject_id, number),
    constraint ends_once check ((status = 'waiting') = (ended_at is null)),
    constraint is_due_while_it_waits check (due_at is null or status = 'waiting')
);
comment on table webhook_deliveries is 'A message for one endpoint.';
comment on column webhook_deliveries.number is 'Its number among the messages about its subject that the endpoint gets: 1, 2, 3 ...';
comment on column webhook_deliveries.due_at is 'When it is sent next; null while it waits: after the message before it.';
create unique index webhook_deliveries_of_endpoint on webhook_deliveries (endpoint_id, message_id);
create index webhook_deliveries_due on webhook_deliveries (endpoint_id, due_at) where due_at is not null;
create index webhook_deliveries_failed on webhook_deliveries (endpoint_id, message_id) where status = 'failed';
create index webhook_deliveries_waiting on webhook_deliveries (subject_id, number) where status = 'waiting';
create index webhook_deliveries_of_message on webhook_deliveries (message_id);

create table webhook_attempts (
    id            bigint generated always as identity primary key,
    endpoint_id   bigint not null references webhook_endpoints on delete cascade,
    message_id    bigint not null references webhook_messages on delete cascade,
    attempted_at  timestamptz not null default clock_timestamp(),
    status        integer,
    milliseconds  integer not null,
    error         text
);
comment on table webhook_attempts is 'Each time a message was sent, and what came back.';
comment on column webhook_attempts.status is 'The HTTP status of the answer; null: there was none.';
comment on column webhook_attempts.error is 'Why it failed; null: it was delivered.';
create index webhook_attempts_of_message on webhook_attempts (message_id, endpoint_id, id);
create index webhook_attempts_of_endpoint on webhook_attempts (endpoint_id);
