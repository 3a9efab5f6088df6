-- What a change of a row causes:
--
-- * update: refused (keep_draws)
-- * delete: refused while the queue exists (keep_draws)

-- refuse --------------------------------------------------------------------------------------------------------------

create or replace trigger keep_draws before update or delete on queue_draws
    for each row execute function keep_draws();
