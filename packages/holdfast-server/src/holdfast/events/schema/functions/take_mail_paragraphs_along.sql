-- The next occurrence of a series says in its mails what the one before said.
create or replace function take_mail_paragraphs_along() returns trigger language plpgsql as $$
begin
    insert into mail_paragraphs (event_id, kind, text)
    select next.id, before.kind, before.text from created as next
     cross join lateral (select kind, text from mail_paragraphs where event_id = next.follows_id limit 9) as before;
    return null;
end $$;

create or replace trigger take_mail_paragraphs_along after insert on events referencing new table as created
    for each statement execute function take_mail_paragraphs_along();
