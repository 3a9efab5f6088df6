-- How requests were answered that may come again with their Idempotency-Key.

create table idempotency_answers (
    id           bytea primary key check (length(id) = 32),
    print        bytea not null check (length(print) = 32),
    sealed       bytea not null,
    inserted_at  timestamptz not null default now()
);
comment on column idempotency_answers.id is 'SHA-256 of the key and of whose it is.';
comment on column idempotency_answers.print is 'SHA-256 of the request.';
comment on column idempotency_answers.sealed is 'The answer, encrypted.';
create index idempotency_answers_by_age on idempotency_answers (inserted_at);
