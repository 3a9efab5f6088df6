-- What the storefront platform told of a shop (webhooks), each once, until it is handled. Of its body, only the fields
-- are here that are needed, and nothing of customers.

create table webhooks (
    id            bigint generated always as identity primary key,
    shop_id       bigint not null references shops,
    webhook_id    text not null check (length(webhook_id) between 1 and 100),
    event_id      text check (length(event_id) <= 100),
    topic         text not null,
    triggered_at  timestamptz,
    payload       bytea,
    received_at   timestamptz not null default now(),
    handled_at    timestamptz,
    due_at        timestamptz default now(),
    attempts      int not null default 0,
    error         text,
    unique (shop_id, webhook_id),
    check (handled_at is null or (due_at is null and payload is null))
) with (fillfactor = 70);
comment on column webhooks.webhook_id is 'The platform''s id of the delivery, the same when it comes again.';
comment on column webhooks.event_id is 'The platform''s id of the cause, which deliveries of several topics share.';
comment on column webhooks.due_at is 'When it is to be handled, or tried again; null: it was handled, or is parked.';
create index webhooks_due on webhooks (due_at) where due_at is not null;
create index webhooks_handled on webhooks (handled_at) where handled_at is not null;
create index webhooks_parked on webhooks (id) where due_at is null and handled_at is null;

alter table webhooks enable row level security;
create policy own_shop on webhooks to holdfast_shop using (shop_id = (select current_shop()));
grant select (shop_id, topic, triggered_at, received_at, handled_at, due_at, attempts) on webhooks to holdfast_shop;
