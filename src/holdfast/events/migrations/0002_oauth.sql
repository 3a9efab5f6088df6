-- Who of an authorization server is which organizer here.

create table oauth_subjects (
    -- The only unique key, because those who insert the same row at once must all run into the same one.
    hash       bytea primary key,
    issuer     text not null,
    subject    text not null check (length(subject) between 1 and 255),
    user_id    bigint not null references users,
    email      text,
    linked_at  timestamptz not null default now(),
    check (hash = sha256(convert_to(issuer || e'\n' || subject, 'UTF8')))
);
comment on column oauth_subjects.email is 'The verified address that made the link; null where the operator made it.';
