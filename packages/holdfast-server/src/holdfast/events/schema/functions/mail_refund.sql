-- The mail about a refund: why the money goes back, whether it waits for a dispute, and how it was decided. Its
-- currency is that of the payment.
create or replace function mail_refund() returns trigger language plpgsql as $$
begin
    insert into mails (kind, thread, recipient, arguments)
    select 'refund', 'refund ' || new.id, person.email,
           jsonb_build_object('organizer_id', organizer_id, 'event_id', event_id, 'user_id', person.public_id,
                              'arrival', arrival, 'amount', new.amount, 'currency', payments.currency,
                              'language', language, 'reason', news.reason)
      from payments
      join events on events.id = event_id
      join users as person on person.id = user_id
     cross join lateral (select blocked_by_dispute(intent_id) as blocked_by) as dispute
     cross join lateral (
        select case when new.state = 'refused' then 'dispute_lost'
                    when new.state = 'made' then 'dispute_won'
                    when new.awaits_dispute then 'dispute_open'
                    else new.reason end as reason) as news
     where payments.id = new.payment_id and person.email is not null
       and case when tg_op = 'INSERT' then blocked_by is distinct from 'lost'
                when new.state = 'refused' then blocked_by is not distinct from 'lost'
                else true end;
    return null;
end $$;

create or replace trigger mail_refund after insert on refunds for each row execute function mail_refund();
create or replace trigger mail_refund_news after update of state, awaits_dispute on refunds
    for each row when (
        old.state = 'wanted' and (new.state = 'refused' or new.state = 'made' and new.awaits_dispute)
        or new.state = 'wanted' and new.awaits_dispute and not old.awaits_dispute)
    execute function mail_refund();
