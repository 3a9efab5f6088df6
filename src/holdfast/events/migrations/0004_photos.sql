-- Photos of events, and the uploads they begin as.

-- A file is written only after its row is stored, and a row goes only after its files have: whatever is killed when,
-- no file is forgotten. `awaited`: to be uploaded and looked at; `accepted`: a photo; `doomed`: its files are being
-- deleted, and no event can show it any more.
create type photo_state as enum ('awaited', 'accepted', 'doomed');

create table photos (
    key             text primary key check (key ~ '^photos/([1-9][0-9]*|admin)/[A-Za-z0-9_-]{22}\.(jpg|png|webp|gif)$'),
    organizer_id    bigint references users,
    state           photo_state not null default 'awaited',
    content_type    text not null check (content_type in ('image/jpeg', 'image/png', 'image/webp', 'image/gif')),
    content_length  integer not null check (content_length between 1 and 5000000),
    upload_ends     timestamptz,
    idle_since      timestamptz default now(),
    inserted_at     timestamptz not null default now(),
    unique (key, state),
    constraint a_key_names_whose_it_is check (split_part(key, '/', 2) = coalesce(organizer_id::text, 'admin'))
);
comment on column photos.organizer_id is 'Null for a photo of an admin.';
comment on column photos.upload_ends is 'Until when an upload may be written; null when none is left to clear away.';
comment on column photos.idle_since is 'Since when no event shows it; null while one does.';
create index photos_idle on photos (idle_since) where idle_since is not null;
create index photos_idle_of_organizer on photos (organizer_id) where idle_since is not null;
create index photos_uploaded on photos (upload_ends) where upload_ends is not null;

-- Which events show which photos, kept by the database itself from `events.image_keys`. What an event shows has been
-- accepted, and cannot be doomed while it is shown.
create table event_photos (
    event_id  bigint not null references events,
    key       text not null,
    state     photo_state not null default 'accepted' check (state = 'accepted'),
    primary key (event_id, key),
    foreign key (key, state) references photos (key, state)
);
create index event_photos_of_photo on event_photos (key);

create function show_photos() returns trigger language plpgsql as $$
declare
    gone text[];
begin
    insert into event_photos (event_id, key)
    select new.id, shown.key from unnest(new.image_keys) as shown (key) order by shown.key
        on conflict do nothing;
    update photos set idle_since = null where key = any (new.image_keys) and idle_since is not null;
    with hidden as (
        delete from event_photos where event_id = new.id and key <> all (new.image_keys) returning key)
    select array_agg(key) into gone from hidden;
    -- Locked first, so that of two events that let go of a photo at once the second sees that the first did.
    perform from photos where key = any (gone) order by key for no key update;
    update photos set idle_since = now()
     where key = any (gone) and not exists (select from event_photos where event_photos.key = photos.key);
    return null;
end $$;

create trigger show_first_photos after insert on events
    for each row when (new.image_keys <> '{}') execute function show_photos();
create trigger show_changed_photos after update of image_keys on events
    for each row when (new.image_keys <> old.image_keys) execute function show_photos();
