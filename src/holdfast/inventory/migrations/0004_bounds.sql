-- What keeps the storage of a shop bounded, and what the jobs that delete need.

alter table idempotency_answers add account text;
comment on column idempotency_answers.account is 'Whose it is, if it is large: of each, so many bytes are kept.';
create index idempotency_answers_large on idempotency_answers (account, inserted_at) where account is not null;
grant insert (account), update (account) on idempotency_answers to holdfast_shop;

create index holds_ended on holds (released_at) where released_at is not null;
