-- Agents that ask a person first: what they want to change is stored as a request until a person approves or declines it.

alter table agent_limits add column asks_first boolean not null default false;
comment on column agent_limits.asks_first is 'Whether a person must approve each change that the credential asks for.';

create table agent_requests (
    id            bigint generated always as identity primary key,
    tenant_id     bigint not null,
    key_id        bigint,
    client_id     text references oauth_clients on delete cascade,
    slot          smallint check (slot between 1 and 50),
    digest        bytea not null check (length(digest) = 32),
    operation     text not null,
    sealed        bytea not null,
    status        text not null default 'waiting' check (status in ('waiting', 'done', 'declined', 'expired')),
    is_told       boolean not null default false,
    requested_at  timestamptz not null default now(),
    expires_at    timestamptz not null default now() + interval '24 hours',
    ended_at      timestamptz,
    constraint one_credential_asks check (num_nonnulls(key_id, client_id) = 1),
    constraint waits_in_a_slot check ((status = 'waiting') = (slot is not null)),
    constraint ends_once check ((status = 'waiting') = (ended_at is null)),
    constraint nothing_is_kept_of_what_ended check (status = 'waiting' or sealed = '')
);
comment on table agent_requests is 'Changes that an agent asks for and a person must approve. Kept for two days.';
comment on column agent_requests.slot is 'Each credential has 50, so no more of its requests wait.';
comment on column agent_requests.digest is 'The hash of the credential, the operation, the command and its idempotency key.';
comment on column agent_requests.sealed is 'The command; empty once the request has ended.';
comment on column agent_requests.is_told is 'Whether the agent has got the answer to a call without an idempotency key.';
create unique index agent_requests_waiting on agent_requests (digest) where status = 'waiting';
create unique index agent_requests_of_key on agent_requests (key_id, slot) where status = 'waiting' and key_id is not null;
create unique index agent_requests_of_client on agent_requests (tenant_id, client_id, slot)
    where status = 'waiting' and client_id is not null;
create index agent_requests_by_digest on agent_requests (digest, id);
create index agent_requests_of_tenant on agent_requests (tenant_id, id) where status = 'waiting';
create index agent_requests_by_tenant on agent_requests (tenant_id);
create index agent_requests_by_key on agent_requests (key_id) where key_id is not null;
-- Many tenants connect the same app.
create index agent_requests_by_client on agent_requests (client_id, tenant_id) where client_id is not null;
create index agent_requests_by_age on agent_requests (requested_at);
