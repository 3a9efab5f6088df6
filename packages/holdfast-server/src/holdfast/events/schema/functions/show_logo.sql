-- Which photos are logos: they stay, and the one that is replaced is deleted after a day like a photo of an event.
create or replace function show_logo() returns trigger language plpgsql as $$
begin
    -- Locked first, as in `show_photos`.
    perform from photos where key in (old.logo_key, new.logo_key) order by key for no key update;
    update photos set idle_since = null where key = new.logo_key and idle_since is not null;
    update photos set idle_since = now()
     where key = old.logo_key and not exists (select from event_photos where event_photos.key = photos.key);
    return null;
end $$;

create or replace trigger show_changed_logo after update of logo_key on users
    for each row when (new.logo_key is distinct from old.logo_key) execute function show_logo();
