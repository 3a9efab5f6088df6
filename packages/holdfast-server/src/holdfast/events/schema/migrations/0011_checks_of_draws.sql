-- PostgreSQL parses the checks of a table anew for each statement that changes it, and each batch of joins changes the row
-- of its queue. So a trigger checks what a draw is, and only when a draw changes (functions/check_draw.sql).
alter table queues
    drop constraint a_draw_names_its_round,
    drop constraint only_a_frozen_list_is_drawn,
    drop constraint a_void_draw_draws_nobody,
    drop constraint queues_draw_round_check,
    drop constraint queues_draw_entries_check;

-- The functions that log changes count them. A trigger with a condition costs each insert the parsing of that condition.
drop trigger if exists count_organizer_changes on log_pending;
drop function if exists count_organizer_changes;
