-- What a change of a row causes:
--
-- * insert: the processes that send mails are told (tell_of_mails)

-- tell ----------------------------------------------------------------------------------------------------------------

-- The processes that send mails are told of new ones. A statement that inserts no mail sends no notice: else every
-- registration would, which may cause mails.
create or replace function tell_of_mails() returns trigger language plpgsql as $$
begin
    if exists (select from inserted) then
        perform pg_notify('holdfast', 'mails ');
    end if;
    return null;
end $$;

create or replace trigger tell_of_mails after insert on mails referencing new table as inserted
    for each statement execute function tell_of_mails();
