-- What a change of a row causes:
--
-- * update of id: refused (refuse_change_of_key)
-- * update of email or name: searches find the new ones (search_person_anew)
-- * update of logo_key: the photo that is no logo any more is deleted later (show_logo)
-- * update of public_id: registrations keep the one that logs have (keep_logged_id)
-- * update of proved_at or erased_at: it is forgotten from where an organizer registered (forget_networks)
-- * update of proved_at: the held mails of an organizer are released (release_mails_of_organizer)
-- * update of what events show of their organizer: tells the pages of all events (tell_of_any_event)
-- * update of what else the page of an organizer shows: tells that page (tell_of_look)
-- * delete: refused while it has registrations (keep_registered_people)

-- refuse --------------------------------------------------------------------------------------------------------------

create or replace trigger refuse_change_of_key before update of id on users
    for each row when (old.id <> new.id) execute function refuse_change_of_key();

-- An account that has registrations is not deleted (see `check_references`).
create or replace function keep_registered_people() returns trigger language plpgsql as $$
declare
    kept bigint;
begin
    select user_id into kept from before
     cross join lateral (select user_id from registrations where user_id = before.id limit 1) as its_registration
     limit 1;
    if found then
        raise foreign_key_violation using
            message = format('Account %s has registrations.', kept),
            constraint = 'registrations_user_id_fkey', table = 'registrations';
    end if;
    return null;
end $$;

create or replace trigger keep_registered_people after delete on users
    referencing old table as before for each statement execute function keep_registered_people();

-- change --------------------------------------------------------------------------------------------------------------

-- As `search_registration_anew`, for all registrations of a person.
create or replace function search_person_anew() returns trigger language plpgsql as $$
begin
    perform from searched_events where event_id in (select event_id from registrations where user_id = new.id)
      order by event_id for no key update;
    update searched_registrations as searched set words = searched_words(new.email, coalesce(registrations.name, new.name))
      from registrations
     where registrations.user_id = new.id
       and (searched.event_id, searched.user_id) = (registrations.event_id, registrations.user_id);
    return null;
end $$;

create or replace trigger search_person_anew after update of email, name on users for each row
    when (old.email is distinct from new.email or old.name is distinct from new.name)
    execute function search_person_anew();

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

-- From where an organizer was registered matters only until its address is proved, or it is erased. Its photos take nothing
-- of the share of strangers from then on.
create or replace function forget_networks() returns trigger language plpgsql as $$
begin
    new.registered_from = null;
    update photos set networks = null where organizer_id = new.id and networks is not null;
    return new;
end $$;

create or replace trigger forget_networks before update of proved_at, erased_at on users
    for each row when (old.slug is not null and coalesce(old.proved_at, old.erased_at) is null
                       and coalesce(new.proved_at, new.erased_at) is not null)
    execute function forget_networks();

-- log -----------------------------------------------------------------------------------------------------------------

-- The public id of an account is in the commitments of its registrations, so a registration keeps the id when the
-- account gets another one. Registrations of people who are erased have no nonce any more, and keep nothing.
create or replace function keep_logged_id() returns trigger language plpgsql as $$
begin
    perform hide_pending_arrivals(old.id);
    update registrations set logged_as = old.public_id
     where user_id = old.id and nonce is not null and logged_as is null;
    return new;
end $$;

create or replace trigger keep_logged_id before update of public_id on users
    for each row when (old.public_id <> new.public_id) execute function keep_logged_id();

-- mail ----------------------------------------------------------------------------------------------------------------

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

-- tell ----------------------------------------------------------------------------------------------------------------

create or replace trigger tell_of_any_event after update of name, slug, proved_at on users
    for each row when (old.slug is not null and (old.name, old.slug, old.proved_at is null)
                       is distinct from (new.name, new.slug, new.proved_at is null))
    execute function tell_of_any_event();
create or replace trigger tell_of_ready_organizers after update of payouts_ready on users
    for each row when (old.payouts_ready <> new.payouts_ready) execute function tell_of_any_event();

-- What else the page of an organizer shows. `tell_of_any_event` tells of its name and of what events show too.
create or replace function tell_of_look() returns trigger language plpgsql as $$
begin
    perform pg_notify('holdfast', 'organizers ' || old.slug);
    return null;
end $$;

create or replace trigger tell_of_look after update of about, accent, logo_key, erased_at on users
    for each row when (old.slug is not null and (old.about, old.accent, old.logo_key, old.erased_at)
                       is distinct from (new.about, new.accent, new.logo_key, new.erased_at))
    execute function tell_of_look();
