-- Owners take turns: the first mail of each is found without reading those of others.
create index mails_in_turns on mails
    (bulk, (coalesce(arguments ->> 'organizer_id', arguments ->> 'merchant_id', '')), due_at, id)
    where ended_at is null and hold is null;
