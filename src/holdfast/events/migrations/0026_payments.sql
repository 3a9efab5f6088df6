-- What people pay for their seats, and where the money goes.

alter table registrations
    add amount_due bigint check (amount_due > 0),
    add held_until timestamptz,
    add constraint only_held_seats_end check ((status = 'held') = (held_until is not null)),
    add constraint seats_are_held_for_an_amount check (status <> 'held' or amount_due is not null);
comment on column registrations.amount_due is 'What the person has to pay for the seat, in minor units; null: nothing.';
comment on column registrations.held_until is 'When the seat is given away if it has not been paid.';
create index registrations_held on registrations (event_id) where status = 'held';

-- As before; a held seat counts.
create or replace function count_seats() returns trigger language plpgsql as $$
begin
    if tg_op = 'INSERT' then
        update events set registered_count = registered_count + change.registered,
                          waitlisted_count = waitlisted_count + change.waitlisted
          from (select event_id, count(*) filter (where status in ('registered', 'held')) as registered,
                                 count(*) filter (where status = 'waitlisted') as waitlisted
                  from after where status in ('registered', 'held', 'waitlisted') group by event_id) as change
         where events.id = change.event_id;
    elsif tg_op = 'DELETE' then
        update events set registered_count = registered_count - change.registered,
                          waitlisted_count = waitlisted_count - change.waitlisted
          from (select event_id, count(*) filter (where status in ('registered', 'held')) as registered,
                                 count(*) filter (where status = 'waitlisted') as waitlisted
                  from before where status in ('registered', 'held', 'waitlisted') group by event_id) as change
         where events.id = change.event_id;
    else
        update events set registered_count = registered_count + change.registered,
                          waitlisted_count = waitlisted_count + change.waitlisted
          from (select event_id, sum(seat) filter (where status in ('registered', 'held')) as registered,
                                 sum(seat) filter (where status = 'waitlisted') as waitlisted
                  from (select event_id, status, 1 as seat from after
                        union all
                        select event_id, status, -1 from before) as seats
                 group by event_id) as moved
          cross join lateral (select moved.event_id, coalesce(moved.registered, 0) as registered,
                                     coalesce(moved.waitlisted, 0) as waitlisted) as change
         where events.id = change.event_id and (change.registered <> 0 or change.waitlisted <> 0);
    end if;
    return null;
end $$;

drop trigger note_promotion on registrations;
create trigger note_promotion before update of status on registrations
    for each row when (old.status = 'waitlisted' and new.status in ('registered', 'held'))
    execute function note_promotion();

-- The account of an organizer at the payment processor.
create table payout_accounts (
    organizer_id  bigint primary key references users,
    account_id    text not null unique,
    refund_days   integer not null default 0 check (refund_days between 0 and 3650),
    due_at        timestamptz,
    attempts      integer not null default 0,
    error         text check (length(error) <= 1000),
    inserted_at   timestamptz not null default now()
);
comment on column payout_accounts.refund_days is 'Who cancels until so many days before an event gets everything back, later nothing.';
comment on column payout_accounts.due_at is 'When the processor is to be asked whether money can be paid out; null: not.';
create index payout_accounts_due on payout_accounts (due_at) where due_at is not null;

-- One try to pay for one seat: a checkout session of the processor.
create type payment_state as enum ('opening', 'open', 'paid', 'ended', 'refused');
create table payments (
    id           bigint generated always as identity primary key,
    event_id     bigint not null references events,
    user_id      bigint not null references users,
    arrival      bigint not null,
    amount       bigint not null check (amount > 0),
    fee          bigint not null check (fee >= 0 and fee < amount),
    currency     text not null check (currency ~ '^[A-Z]{3}$'),
    account_id   text,
    refund_days  integer not null default 0,
    state        payment_state not null default 'opening',
    session_id   text unique,
    intent_id    text unique,
    url          text,
    checkout     jsonb,
    ends_at      timestamptz not null,
    due_at       timestamptz default now(),
    attempts     integer not null default 0,
    error        text check (length(error) <= 1000),
    refunded     bigint not null default 0,
    kept         bigint not null default 0,
    inserted_at  timestamptz not null default now(),
    paid_at      timestamptz,
    constraint no_more_is_given_back_than_was_paid check (refunded >= 0 and kept >= 0 and refunded + kept <= amount),
    check (state not in ('open', 'paid') or session_id is not null),
    check ((state = 'paid') = (paid_at is not null)),
    check (state = 'paid' or refunded + kept = 0)
);
comment on column payments.arrival is 'Of the registration: who registers anew pays anew.';
comment on column payments.account_id is 'The account that the money goes to, without the fee.';
comment on column payments.checkout is 'What the processor is told, again and again until it answers.';
comment on column payments.refund_days is 'The rule for cancellations when the seat was held; later changes do not concern it.';
comment on column payments.url is 'The page of the processor where it can be paid.';
comment on column payments.ends_at is 'From when on it must not be paid any more.';
comment on column payments.due_at is 'When the processor is to be asked, or told, next; null: not.';
comment on column payments.refunded is 'The sum of its refunds, also of those that are still to be made.';
comment on column payments.kept is 'What stays with the organizer by the rule for cancellations.';
create index payments_of_registration on payments (event_id, user_id, arrival);
create unique index one_payment_at_a_time on payments (event_id, user_id, arrival) where state in ('opening', 'open');
create index payments_due on payments (due_at) where due_at is not null;
create index payments_newest on payments (inserted_at);
create index payments_of_person on payments (user_id);

-- Money that goes back to the person. The transfer to the organizer and the fee are taken back in proportion.
create type refund_state as enum ('wanted', 'made', 'refused');
create table refunds (
    id           bigint generated always as identity primary key,
    payment_id   bigint not null references payments,
    amount       bigint not null check (amount > 0),
    reason       text not null check (reason in ('no_seat', 'seat_lost', 'event_cancelled', 'by_organizer')),
    state        refund_state not null default 'wanted',
    refund_id    text unique,
    due_at       timestamptz default now(),
    attempts     integer not null default 0,
    error        text check (length(error) <= 1000),
    inserted_at  timestamptz not null default now(),
    check (state <> 'made' or refund_id is not null)
);
create index refunds_of_payment on refunds (payment_id);
create index refunds_due on refunds (due_at) where due_at is not null;

-- Refunds are summed up by the database itself, so that the CHECK above holds whatever the code does.
create function sum_refunds() returns trigger language plpgsql as $$
begin
    update payments set refunded = refunded + new.amount where id = new.payment_id;
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;
create trigger sum_refunds after insert on refunds for each row execute function sum_refunds();

-- Who loses a seat gets back what was paid for it, whoever took the seat away; and can pay for it no more.
create function give_back() returns trigger language plpgsql as $$
begin
    if tg_op = 'UPDATE' and new.reason = 'no_show' then
        -- The seat was kept free until the event began.
        update payments set kept = amount - refunded
         where event_id = old.event_id and user_id = old.user_id and arrival = old.arrival and state = 'paid';
        return null;
    end if;
    update payments set ends_at = least(ends_at, now()), due_at = now()
     where event_id = old.event_id and user_id = old.user_id and arrival = old.arrival
       and state in ('opening', 'open');
    insert into refunds (payment_id, amount, reason)
    select id, amount - refunded - kept, 'seat_lost' from payments
     where event_id = old.event_id and user_id = old.user_id and arrival = old.arrival
       and state = 'paid' and refunded + kept < amount;
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;
-- Who moves from a seat to the waiting list has paid nothing any more, and pays anew for the next seat.
create function forget_amount() returns trigger language plpgsql as $$
begin
    new.amount_paid = 0;
    return new;
end $$;
create trigger forget_amount before update of status on registrations
    for each row when (old.amount_due is not null and old.status = 'registered' and new.status = 'waitlisted')
    execute function forget_amount();

create trigger give_back_moved after update of status on registrations
    for each row when (old.amount_due is not null and old.status in ('held', 'registered')
                       and new.status not in ('held', 'registered'))
    execute function give_back();
create trigger give_back_removed after delete on registrations
    for each row when (old.amount_due is not null and old.status in ('held', 'registered'))
    execute function give_back();

create function give_back_all() returns trigger language plpgsql as $$
begin
    update payments set ends_at = least(ends_at, now()), due_at = now()
     where event_id = new.id and state in ('opening', 'open');
    insert into refunds (payment_id, amount, reason)
    select id, amount - refunded - kept, 'event_cancelled' from payments
     where event_id = new.id and state = 'paid' and refunded + kept < amount;
    perform pg_notify('holdfast', 'payments ');
    return null;
end $$;
create trigger give_back_all after update of cancelled_at on events
    for each row when (old.cancelled_at is null and new.cancelled_at is not null and new.pricing_mode <> 'free')
    execute function give_back_all();

-- What the processor told us. Each of its messages is stored once.
create table processor_events (
    id           text primary key check (length(id) between 1 and 255),
    kind         text not null check (length(kind) between 1 and 255),
    object_id    text check (length(object_id) <= 255),
    received_at  timestamptz not null default now()
);
create index processor_events_received on processor_events (received_at);

create trigger tell_of_ready_organizers after update of payouts_ready on users
    for each row when (old.payouts_ready <> new.payouts_ready) execute function tell_of_any_event();

-- As before, and who has to pay is told so, and who gets money back.
create or replace function mail_registrations() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        insert into mails (kind, thread, recipient, arguments)
        select 'removed', 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'arrival', arrival,
                                  'name', name, 'language', language)
          from before
         cross join lateral (select public_id, email from users
                              where users.id = before.user_id and email is not null limit 1) as person
         cross join lateral (select id from events
                              where events.id = before.event_id and cancelled_at is null and datetime > now()
                              limit 1) as future
         where status in ('registered', 'held', 'waitlisted') and notify
         order by arrival;
    else
        -- The rows before and after are brought together by grouping: a join is planned once, for any number of rows.
        insert into mails (kind, thread, recipient, arguments)
        select kind, 'registration ' || event_id || ' ' || person.public_id, person.email,
               jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'arrival', arrival,
                                  'name', name, 'language', language, 'reason', reason)
          from (select event_id, user_id, max(arrival) as arrival, max(name) as name, max(language) as language,
                       max(reason) as reason, bool_or(notify) as notify,
                       case max(was)::text || ' ' || max(becomes)::text
                            when 'pending registered' then 'seat'
                            when 'held registered' then 'seat'
                            when 'pending waitlisted' then 'waitlisted'
                            when 'registered waitlisted' then 'waitlisted'
                            when 'pending rejected' then 'refused'
                            when 'held rejected' then 'refused'
                            when 'waitlisted held' then 'payment_due'
                            when 'rejected registered' then 'seat'
                            when 'waitlisted registered' then 'promoted' end as kind
                  from (select event_id, user_id, status as was, null::registration_status as becomes,
                               null::bigint as arrival, null as name, null as language, null as reason, null as notify
                          from before
                        union all
                        select event_id, user_id, null, status, arrival, name, language, reason, notify from after)
                       as rows
                 group by event_id, user_id) as moved
         cross join lateral (select public_id, email from users
                              where users.id = moved.user_id and email is not null limit 1) as person
         where kind is not null and notify
         order by arrival;
    end if;
    return null;
end $$;

create function mail_refund() returns trigger language plpgsql as $$
begin
    insert into mails (kind, thread, recipient, arguments)
    select 'refund', 'refund ' || new.id, person.email,
           jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'arrival', arrival,
                              'amount', new.amount,
                              'language', (select language from registrations
                                            where registrations.event_id = payments.event_id
                                              and registrations.user_id = payments.user_id))
      from payments
      join users as person on person.id = user_id
     where payments.id = new.payment_id and person.email is not null;
    return null;
end $$;
create trigger mail_refund after insert on refunds for each row execute function mail_refund();
