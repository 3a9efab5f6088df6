-- Who of an authorization server is which organizer here.

create table oauth_subjects (
    -- The only key that an insert may run into, because those who insert the same row at once must all run into the same.
    hash       bytea primary key,
    issuer     text not null,
    subject    text not null check (length(subject) between 1 and 255),
    user_id    bigint references users,
    email      text,
    since      timestamptz not null default now(),
    check (hash = sha256(convert_to(issuer || e'\n' || subject, 'UTF8'))),
    check (email is null or user_id is not null)
);
comment on column oauth_subjects.user_id is 'Null once the operator has unlinked it: no address links it again.';
comment on column oauth_subjects.email is 'The verified address that made the link; null where the operator made it.';
create index oauth_subjects_of_user on oauth_subjects (user_id);

-- An address makes one link. Whoever makes it holds the lock of the account, so nobody runs into this.
create unique index oauth_subject_by_address on oauth_subjects (user_id, issuer) where email is not null;
