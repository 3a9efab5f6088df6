-- Organizers add a paragraph of their own to the mails about an event: one to each kind of mail.

create table mail_paragraphs (
    event_id  bigint not null references events,
    kind      text not null check (kind in ('seat', 'waitlisted', 'promoted', 'refused', 'removed', 'event_changed',
                                            'event_cancelled')),
    text      text not null check (length(text) between 1 and 1000),
    primary key (event_id, kind)
);

-- The next occurrence of a series says in its mails what the one before said.
create function take_mail_paragraphs_along() returns trigger language plpgsql as $$
begin
    insert into mail_paragraphs (event_id, kind, text)
    select next.id, before.kind, before.text from created as next
     cross join lateral (select kind, text from mail_paragraphs where event_id = next.follows_id limit 7) as before;
    return null;
end $$;
create trigger take_mail_paragraphs_along after insert on events referencing new table as created
    for each statement execute function take_mail_paragraphs_along();
