-- Links to sign in that were sent by mail, and sessions of those who are signed in.

create table sign_in_links (
    id         bigint generated always as identity primary key,
    email      text not null check (length(email) <= 254),
    browser    bytea not null check (length(browser) = 32),
    return_to  text not null check (length(return_to) <= 8000),
    language   text,
    asked_at   timestamptz not null default now(),
    used_at    timestamptz
);
comment on column sign_in_links.browser is 'The digest of the cookie of the browser that asked: only there the link works.';
create index sign_in_links_by_age on sign_in_links (asked_at);

create table sessions (
    id          bigint generated always as identity primary key,
    hash        bytea not null unique check (length(hash) = 32),
    account_id  bigint not null,
    way         text not null check (way in ('link', 'password')),
    browser     text not null check (length(browser) <= 300),
    began_at    timestamptz not null default now(),
    seen_at     timestamptz not null default now()
);
comment on column sessions.hash is 'The digest of the cookie.';
comment on column sessions.browser is 'What the browser calls itself.';
create index sessions_of_account on sessions (account_id, id);
create index sessions_by_age on sessions (seen_at);
