-- The mails about refunds: why the money goes back, whether it waits for a dispute, and how it was decided. Their
-- currency is that of the payment.
create or replace function mail_refunds(refund_ids bigint[], are_new boolean) returns void language sql as $$
    insert into mails (kind, thread, recipient, arguments)
    select 'refund', 'refund ' || refunds.id, person.email,
           jsonb_build_object('organizer_id', organizer_id, 'event_id', event_id, 'user_id', person.public_id,
                              'arrival', arrival, 'amount', refunds.amount, 'currency', payments.currency,
                              'language', language, 'reason', news.reason)
      from refunds
      join payments on payments.id = payment_id
      join events on events.id = event_id
      join users as person on person.id = user_id
     cross join lateral (select blocked_by_dispute(intent_id) as blocked_by) as dispute
     cross join lateral (
        select case when refunds.state = 'refused' then 'dispute_lost'
                    when refunds.state = 'made' then 'dispute_won'
                    when refunds.awaits_dispute then 'dispute_open'
                    else refunds.reason end as reason) as news
     where refunds.id = any (refund_ids) and person.email is not null
       and case when are_new then blocked_by is distinct from 'lost'
                when refunds.state = 'refused' then blocked_by is not distinct from 'lost'
                else true end
     order by refunds.id
$$;
