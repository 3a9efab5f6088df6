-- The authorization server: clients, what people allowed them, codes and tokens. Of secrets only hashes are stored.

create table oauth_clients (
    id            text primary key check (length(id) between 1 and 500),
    name          text check (length(name) between 1 and 100),
    redirect_uris text[] not null check (cardinality(redirect_uris) between 1 and 20),
    fetched_until timestamptz,
    inserted_at   timestamptz not null default now(),
    used_at       timestamptz,
    check ((fetched_until is not null) = starts_with(id, 'https://'))
);
comment on column oauth_clients.id is 'The address of its metadata document, or an id that was made at its registration.';
comment on column oauth_clients.fetched_until is 'Until then the metadata document need not be read again.';
comment on column oauth_clients.used_at is 'When somebody last allowed it something; null: never.';
create index oauth_clients_unused on oauth_clients (coalesce(used_at, inserted_at));

-- What somebody allowed a client, once. The tokens that come of it end with it.
create table oauth_grants (
    id         bigint generated always as identity primary key,
    account_id bigint not null,
    tenant_id  bigint not null,
    client_id  text not null references oauth_clients,
    scopes     text[] not null check (cardinality(scopes) > 0),
    granted_at timestamptz not null default now(),
    used_at    timestamptz,
    expires_at timestamptz not null,
    ended_at   timestamptz,
    reason     text check (reason in ('disconnected', 'revoked', 'code_misused', 'refresh_token_misused')),
    check ((ended_at is null) = (reason is null))
);
comment on column oauth_grants.account_id is 'Who allowed it.';
comment on column oauth_grants.tenant_id is 'For whom the client acts.';
comment on column oauth_grants.used_at is 'When tokens were last issued for it; null: the client has not come for them.';
create index oauth_grants_of_tenant on oauth_grants (tenant_id, client_id);
create index oauth_grants_of_account on oauth_grants (account_id);
create index oauth_grants_of_client on oauth_grants (client_id);
create index oauth_grants_over on oauth_grants (least(expires_at, ended_at));

create table oauth_codes (
    hash         bytea primary key check (length(hash) = 32),
    grant_id     bigint not null unique references oauth_grants on delete cascade,
    redirect_uri text not null,
    challenge    text not null check (challenge ~ '^[A-Za-z0-9_-]{43}$'),
    expires_at   timestamptz not null,
    used_at      timestamptz
);

create table oauth_access_tokens (
    hash       bytea primary key check (length(hash) = 32),
    grant_id   bigint not null references oauth_grants on delete cascade,
    scopes     text[] not null check (cardinality(scopes) > 0),
    expires_at timestamptz not null
);
create index oauth_access_tokens_of_grant on oauth_access_tokens (grant_id);
create index oauth_access_tokens_over on oauth_access_tokens (expires_at);

create table oauth_refresh_tokens (
    hash       bytea primary key check (length(hash) = 32),
    grant_id   bigint not null references oauth_grants on delete cascade,
    expires_at timestamptz not null,
    used_at    timestamptz
);
create index oauth_refresh_tokens_over on oauth_refresh_tokens (expires_at);
create index oauth_refresh_tokens_of_grant on oauth_refresh_tokens (grant_id);

-- One refresh token of a grant is good at a time.
create unique index oauth_refresh_token_of_now on oauth_refresh_tokens (grant_id) where used_at is null;
