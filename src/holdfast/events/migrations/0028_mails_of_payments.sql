-- Mails about payments: organizers add a paragraph to them, and they are in the language of the person who paid.

alter table mail_paragraphs drop constraint mail_paragraphs_kind_check;
alter table mail_paragraphs add constraint mail_paragraphs_kind_check
    check (kind in ('seat', 'waitlisted', 'promoted', 'refused', 'removed', 'event_changed', 'event_cancelled',
                    'payment_due', 'refund'));

-- As before, with the two new kinds.
create or replace function take_mail_paragraphs_along() returns trigger language plpgsql as $$
begin
    insert into mail_paragraphs (event_id, kind, text)
    select next.id, before.kind, before.text from created as next
     cross join lateral (select kind, text from mail_paragraphs where event_id = next.follows_id limit 9) as before;
    return null;
end $$;

-- Money goes back after the registration was deleted, so the payment itself knows the language.
alter table payments add language text check (language ~ '^[a-z]{2}$');
comment on column payments.language is 'In which the person registered, for mails.';
update payments set language = registrations.language
  from registrations
 where registrations.event_id = payments.event_id and registrations.user_id = payments.user_id
   and registrations.arrival = payments.arrival;

-- As before; the mail says also why the money goes back.
create or replace function mail_refund() returns trigger language plpgsql as $$
begin
    insert into mails (kind, thread, recipient, arguments)
    select 'refund', 'refund ' || new.id, person.email,
           jsonb_build_object('event_id', event_id, 'user_id', person.public_id, 'arrival', arrival,
                              'amount', new.amount, 'language', language, 'reason', new.reason)
      from payments
      join users as person on person.id = user_id
     where payments.id = new.payment_id and person.email is not null;
    return null;
end $$;
