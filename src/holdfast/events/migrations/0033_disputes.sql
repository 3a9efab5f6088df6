-- Payments that the bank of a card has taken back, or wants to, because the holder of the card disputes them.

create type dispute_state as enum ('unknown', 'inquiry', 'open', 'won', 'lost', 'closed');
create table disputes (
    id           bigint generated always as identity primary key,
    dispute_id   text not null unique check (length(dispute_id) between 1 and 255),
    intent_id    text not null check (length(intent_id) between 1 and 255),
    state        dispute_state not null default 'unknown',
    amount       bigint check (amount >= 0),
    refundable   boolean not null default false,
    due_at       timestamptz default now(),
    attempts     integer not null default 0,
    error        text check (length(error) <= 1000),
    inserted_at  timestamptz not null default now(),
    check (state = 'unknown' or amount is not null)
);
comment on column disputes.intent_id is 'Of the payment. The message of a dispute may arrive before that of its payment.';
comment on column disputes.state is 'Unknown until the processor was asked; closed: it ended and no money was taken.';
comment on column disputes.refundable is 'Whether the processor gives money back while it is not decided.';
create index disputes_of_payment on disputes (intent_id);
create index disputes_due on disputes (due_at) where due_at is not null;

-- Whether money can be given back of a payment: not while a dispute decides who has it, nor after it was lost.
create function blocked_by_dispute(intent text) returns text language sql stable as $$
    select max(case when state = 'lost' then 'lost' else 'open' end) from disputes
     where intent_id = intent and (state = 'lost' or state in ('unknown', 'inquiry', 'open') and not refundable)
$$;

-- Refunds wait for the end of a dispute.
create function free_refunds() returns trigger language plpgsql as $$
begin
    update refunds set due_at = now()
      from payments where payments.id = payment_id and payments.intent_id = new.intent_id and refunds.state = 'wanted';
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;
create trigger free_refunds after update of state, refundable on disputes
    for each row when (old.state <> new.state or old.refundable <> new.refundable) execute function free_refunds();
