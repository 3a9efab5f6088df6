-- Which events show which photos, kept by the database itself from `events.image_keys`.
create or replace function show_photos() returns trigger language plpgsql as $$
declare
    gone text[];
begin
    -- Locked first: of two transactions that show a photo and let go of it at once, the second sees what the first did.
    perform from photos
      where key = any (new.image_keys || array(select event_photos.key from event_photos where event_id = new.id))
      order by key for no key update;
    insert into event_photos (event_id, key)
    select new.id, shown.key from unnest(new.image_keys) as shown (key) order by shown.key
        on conflict do nothing;
    update photos set idle_since = null where key = any (new.image_keys) and idle_since is not null;
    with hidden as (
        delete from event_photos where event_id = new.id and key <> all (new.image_keys) returning key)
    select array_agg(key) into gone from hidden;
    update photos set idle_since = now()
     where key = any (gone) and not exists (select from event_photos where event_photos.key = photos.key)
       and not exists (select from users where users.logo_key = photos.key);
    return null;
end $$;

create or replace trigger show_first_photos after insert on events
    for each row when (new.image_keys <> '{}') execute function show_photos();
create or replace trigger show_changed_photos after update of image_keys on events
    for each row when (new.image_keys <> old.image_keys) execute function show_photos();
