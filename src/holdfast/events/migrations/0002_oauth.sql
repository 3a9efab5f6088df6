-- Who of an authorization server is which organizer here.

create table oauth_subjects (
    issuer     text not null,
    subject    text not null check (length(subject) between 1 and 255),
    hash       bytea not null unique check (hash = sha256(convert_to(issuer || e'\n' || subject, 'UTF8'))),
    user_id    bigint not null references users,
    email      text,
    linked_at  timestamptz not null default now(),
    primary key (issuer, subject)
);
comment on column oauth_subjects.hash is 'What calls look up.';
comment on column oauth_subjects.email is 'The verified address that made the link; null where the operator made it.';
