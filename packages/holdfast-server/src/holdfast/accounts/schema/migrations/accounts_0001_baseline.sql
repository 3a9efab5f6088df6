-- Replaces the migrations up to accounts_0007_stopped_mails.sql, the last of the version of 2026-11-25 (70cc5f1).

-- Links to sign in that were sent by mail, and sessions of those who are signed in.

create table sign_in_links (
    id         bigint generated always as identity primary key,
    email      text not null check (length(email) <= 254),
    browser    bytea check (length(browser) = 32),
    return_to  text not null check (length(return_to) <= 8000),
    language   text,
    asked_at   timestamptz not null default now(),
    used_at    timestamptz
);
comment on column sign_in_links.browser is
    'The digest of the cookie of the browser that asked: only there the link works. Null: in any, an operator made it.';
create index sign_in_links_by_age on sign_in_links (asked_at);

create table sessions (
    id          bigint generated always as identity primary key,
    hash        bytea not null unique check (length(hash) = 32),
    account_id  bigint not null,
    way         text not null check (way in ('link', 'password', 'platform')),
    browser     text not null check (length(browser) <= 300),
    began_at    timestamptz not null default now(),
    seen_at     timestamptz not null default now()
);
comment on column sessions.hash is 'The digest of the cookie.';
comment on column sessions.browser is 'What the browser calls itself.';
create index sessions_of_account on sessions (account_id, id);
create index sessions_by_age on sessions (seen_at);

-- Browsers in which the owner of an account has signed in, for a while: whoever tries passwords elsewhere in the owner's
-- name uses up no tries of theirs.
create table known_browsers (
    hash        bytea primary key check (length(hash) = 32),
    account_id  bigint not null,
    known_at    timestamptz not null default now()
);
comment on column known_browsers.hash is 'The digest of the cookie and of the address: it is good for this address alone.';
create index known_browsers_of_account on known_browsers (account_id);
create index known_browsers_by_age on known_browsers (known_at);

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

-- The keys that sign trusted-auth tokens, which tell another authorization server who is signed in here.
create table trusted_auth_keys (
    kid         text primary key,
    sealed      bytea not null,
    inserted_at timestamptz not null default now()
);

-- Whoever reads the mails to an address stops them with one click. Of the address only a digest is stored.
create table stopped_mails (
    mailbox     bytea primary key check (length(mailbox) = 32),
    stopped_at  timestamptz not null default now()
);
comment on table stopped_mails is 'Mailboxes that get no mails, except those that somebody waits for, such as links to sign in.';
comment on column stopped_mails.mailbox is 'The SHA-256 of the address, without its tag.';
