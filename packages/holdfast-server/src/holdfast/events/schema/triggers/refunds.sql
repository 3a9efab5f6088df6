-- What a change of a row causes:
--
-- * insert: waits for a dispute of the payment (note_dispute_of_refund); is counted in its payment (sum_refunds); the
--   person gets a mail (mail_new_refunds)
-- * update of state to `made`: webhooks are told (tell_webhooks_of_refund)
-- * update: tells the pages of organizers (tell_of_refunds)
-- * update of state or awaits_dispute: the person gets a mail, if that is news (mail_refund)

-- change --------------------------------------------------------------------------------------------------------------

-- Whether a new refund waits for the end of a dispute.
create or replace function note_dispute_of_refund() returns trigger language plpgsql as $$
begin
    new.awaits_dispute = coalesce(
        (select blocked_by_dispute(intent_id) = 'open' from payments where id = new.payment_id), false);
    return new;
end $$;

create or replace trigger note_dispute_of_refund before insert on refunds
    for each row execute function note_dispute_of_refund();

-- Refunds are summed up by the database itself, so that the CHECK of payments holds whatever the code does. Each trigger
-- on new refunds runs once a statement: an event that is cancelled gives all of its payments back in one.
create or replace function sum_refunds() returns trigger language plpgsql as $$
begin
    update payments set refunded = refunded + amounts.amount
      from (select payment_id, sum(amount) as amount from inserted group by payment_id) as amounts
     where id = payment_id;
    if found then
        perform pg_notify('holdfast', 'payments ');
    end if;
    return null;
end $$;

create or replace trigger sum_refunds after insert on refunds referencing new table as inserted
    for each statement execute function sum_refunds();

-- mail ----------------------------------------------------------------------------------------------------------------

-- Both write the mails by mail_refunds.
create or replace function mail_new_refunds() returns trigger language plpgsql as $$
begin
    perform mail_refunds(array(select id from inserted), true);
    return null;
end $$;

create or replace trigger mail_refund after insert on refunds referencing new table as inserted
    for each statement execute function mail_new_refunds();

create or replace function mail_refund() returns trigger language plpgsql as $$
begin
    perform mail_refunds(array[new.id], false);
    return null;
end $$;

create or replace trigger mail_refund_news after update of state, awaits_dispute on refunds
    for each row when (
        old.state = 'wanted' and (new.state = 'refused' or new.state = 'made' and new.awaits_dispute)
        or new.state = 'wanted' and new.awaits_dispute and not old.awaits_dispute)
    execute function mail_refund();

-- tell ----------------------------------------------------------------------------------------------------------------

-- Every process hears which events have a refund that has changed. A new refund changes its payment too.
create or replace function tell_of_refunds() returns trigger language plpgsql as $$
begin
    -- The name of the channel and a space: it must match DETAILS_CHANNEL in events/model.py.
    perform pg_notify('holdfast', 'event_details ' || event_id)
       from (select distinct event_id from payments where id in (select payment_id from changed)) as events;
    return null;
end $$;

create or replace trigger tell_of_refunds after update on refunds referencing new table as changed
    for each statement execute function tell_of_refunds();

create or replace function tell_webhooks_of_refund() returns trigger language plpgsql as $$
begin
    insert into webhook_messages (tenant_id, type, subject, data)
    select organizer_id, 'registration.refunded', 'event ' || event_id,
           jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'amount', new.amount,
                              'currency', payments.currency, 'reason', new.reason)
      from payments
      join events on events.id = event_id
      join users as person on person.id = user_id
     where payments.id = new.payment_id and wants_webhook(organizer_id, 'registration.refunded');
    if found then
        perform pg_notify('holdfast', 'webhook_messages ');
    end if;
    return null;
end $$;

create or replace trigger tell_webhooks_of_refund after update of state on refunds
    for each row when (new.state = 'made' and old.state <> 'made') execute function tell_webhooks_of_refund();
