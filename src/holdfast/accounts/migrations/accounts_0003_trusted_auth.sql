-- The keys that sign trusted-auth tokens, which tell another authorization server who is signed in here.
create table trusted_auth_keys (
    kid         text primary key,
    sealed      bytea not null,
    inserted_at timestamptz not null default now()
);
