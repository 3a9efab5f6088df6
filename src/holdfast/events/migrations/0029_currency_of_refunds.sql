-- As before; the mail names the currency of what was paid, which is that of the payment.
create or replace function mail_refund() returns trigger language plpgsql as $$
begin
    insert into mails (kind, thread, recipient, arguments)
    select 'refund', 'refund ' || new.id, person.email,
           jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'arrival', arrival,
                              'amount', new.amount, 'currency', currency, 'language', language, 'reason', new.reason)
      from payments
      join users as person on person.id = user_id
     where payments.id = new.payment_id and person.email is not null;
    return null;
end $$;
