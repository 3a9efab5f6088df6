-- When an organizer proves its address, a job releases its held mails in batches: there may be a million of them.
create or replace function release_mails_of_organizer() returns trigger language plpgsql as $$
begin
    insert into mail_releases (organizer_id) values (new.id) on conflict do nothing;
    perform pg_notify('holdfast', 'mail_announcements ');
    return null;
end $$;

create or replace trigger release_mails after update of proved_at on users
    for each row when (old.proved_at is null and new.proved_at is not null and new.role = 'organizer')
    execute function release_mails_of_organizer();
