-- Gives the registrations of one account, with all that depends on them, to another account of the same owner. If both
-- are registered for an event, each keeps its own registration.
create or replace function move_registrations(giver bigint, taker bigint) returns void language sql as $$
    select hide_pending_arrivals(giver);
    with event_of_both as (
        select event_id from registrations where user_id = giver
        intersect select event_id from registrations where user_id = taker),
    moved_registration as (
        update registrations
           set user_id = taker,
               logged_as = case when nonce is not null
                                then coalesce(logged_as, (select public_id from users where id = giver)) end
         where user_id = giver and event_id not in (select event_id from event_of_both)
        returning event_id, log_number),
    entered as (
        update event_entries set user_id = taker from moved_registration
         where (event_entries.event_id, ticket) = (moved_registration.event_id, log_number) and user_id = giver),
    -- The references to registrations are checked at the end of the statement.
    scanned as (
        update check_in_scans set user_id = taker
         where user_id = giver and event_id in (select event_id from moved_registration)),
    searched as (
        update searched_registrations
           set user_id = taker, words = searched_words(users.email, coalesce(registrations.name, users.name))
          from registrations, users
         where searched_registrations.user_id = giver and users.id = taker
           and searched_registrations.event_id in (select event_id from moved_registration)
           and (registrations.event_id, registrations.user_id)
             = (searched_registrations.event_id, searched_registrations.user_id))
    update payments set user_id = taker
     where user_id = giver and event_id not in (select event_id from event_of_both)
$$;
