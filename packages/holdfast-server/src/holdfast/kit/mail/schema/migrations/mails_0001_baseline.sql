-- Replaces the migrations up to mails_held, the last of the version of 2026-11-25 (70cc5f1).

create table mails (
    id           bigint generated always as identity primary key,
    kind         text not null check (length(kind) between 1 and 100),
    thread       text not null check (length(thread) between 1 and 200),
    bulk         boolean not null default false,
    recipient    text not null,
    arguments    jsonb not null,
    inserted_at  timestamptz not null default now(),
    due_at       timestamptz not null default now(),
    attempts     integer not null default 0 check (attempts >= 0),
    ended_at     timestamptz,
    outcome      text check (outcome in ('sent', 'superseded', 'failed')),
    error        text check (length(error) <= 1000),
    hold         text check (length(hold) between 1 and 100),
    released_at  timestamptz,
    counted_for  text,
    counted_at   timestamptz,
    check ((outcome is null) = (ended_at is null)),
    check (outcome is distinct from 'failed' or error is not null)
);
comment on column mails.thread is 'Mails of one thread are sent in the order of their ids.';
comment on column mails.bulk is 'Whether it is one of many with one cause: the others go before it.';
comment on column mails.error is 'What the mail server said to the last attempt.';
comment on column mails.hold is 'Why it may not be sent yet, until due_at; null: it may.';
comment on column mails.released_at is 'When it was last held no more.';
comment on column mails.counted_for is 'The mailbox whose limit it counts for; null: it counts for none.';
comment on column mails.counted_at is 'When it was last let go under that limit.';
create index mails_to_send on mails (bulk, due_at, id) where ended_at is null and hold is null;
create index mails_in_threads on mails (thread, id) where ended_at is null;
create index mails_held on mails (due_at, id) where ended_at is null and hold is not null;
create index mails_counted on mails (counted_for, counted_at) where counted_for is not null;
create index mails_ended on mails (ended_at) where ended_at is not null;
create index mails_failed on mails (id) where outcome = 'failed';
create index mails_of_recipient on mails using hash (recipient);

-- The process that sends mails has locked this table, which is always empty.
create table mail_sender ();
