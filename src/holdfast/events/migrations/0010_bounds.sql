-- What keeps the storage of an organizer bounded, and what the jobs that delete need.

alter table idempotency_answers add account text;
comment on column idempotency_answers.account is 'Whose it is, if it is large: of each, so many bytes are kept.';
create index idempotency_answers_large on idempotency_answers (account, inserted_at) where account is not null;

alter table events add prices_thinned_at timestamptz;
comment on column events.prices_thinned_at is 'When its price history was thinned, after it had taken place.';
create index events_to_thin on events (datetime) where pricing_mode = 'dynamic' and prices_thinned_at is null;

-- Of every row, and not only of those in use: an account is deleted only if no row refers to it.
drop index api_keys_of_user;
create index api_keys_of_user on api_keys (user_id);
drop index queues_of_organizer;
create index queues_of_organizer on queues (organizer_id, id);
create index photos_of_organizer on photos (organizer_id);
