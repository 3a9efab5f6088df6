-- What several events may show: an organizer's name, the sizes of a photo. An event that moves changes two pages.
create or replace function tell_of_any_event() returns trigger language plpgsql as $$
begin
    perform pg_notify('holdfast', 'events ');
    return null;
end $$;

create or replace trigger tell_of_any_event after update of name, slug, proved_at on users
    for each row when (old.slug is not null and (old.name, old.slug, old.proved_at is null)
                       is distinct from (new.name, new.slug, new.proved_at is null))
    execute function tell_of_any_event();
create or replace trigger tell_of_any_event after update of widths on photos
    for each row when (old.widths is distinct from new.widths) execute function tell_of_any_event();
create or replace trigger tell_of_ready_organizers after update of payouts_ready on users
    for each row when (old.payouts_ready <> new.payouts_ready) execute function tell_of_any_event();
create or replace trigger tell_of_moved_event after update of organizer_id on events
    for each row when (old.organizer_id <> new.organizer_id) execute function tell_of_any_event();
