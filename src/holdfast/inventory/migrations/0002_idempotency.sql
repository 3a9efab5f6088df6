-- The answers of calls that may come again with their idempotency key move to the table that the kit reads and writes.
-- Calls that were answered before this migration are still known: they are not done twice. Their answers are not
-- copied, because here every answer is encrypted; such a call is answered with idempotency_key_reused.

create table idempotency_answers (
    id           bytea primary key check (length(id) = 32),
    fingerprint  bytea not null check (length(fingerprint) = 32),
    sealed       bytea not null,
    inserted_at  timestamptz not null default now(),
    shop_id      bigint not null default current_shop() references shops
);
comment on column idempotency_answers.id is 'SHA-256 of the shop and the key.';
comment on column idempotency_answers.fingerprint is 'SHA-256 of the call.';
comment on column idempotency_answers.sealed is 'The answer, encrypted; empty for calls before this migration.';
create index idempotency_answers_by_age on idempotency_answers (inserted_at);

insert into idempotency_answers (id, fingerprint, sealed, inserted_at, shop_id)
select sha256(convert_to('shop ' || shop_id || ' ' || key, 'UTF8')), fingerprint, '', created_at, shop_id
  from idempotency_keys;
drop table idempotency_keys;

alter table idempotency_answers enable row level security;
create policy own_shop on idempotency_answers to holdfast_shop using (shop_id = (select current_shop()));
grant select, insert (id, fingerprint, sealed), update (fingerprint, sealed, inserted_at)
   on idempotency_answers to holdfast_shop;
