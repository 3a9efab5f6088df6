-- What a change of a row causes:
--
-- * update: refused (keep_draws)
-- * delete: refused while the event exists (keep_draws)

-- refuse --------------------------------------------------------------------------------------------------------------

create or replace trigger keep_draws before update or delete on event_draws
    for each row execute function keep_draws();
