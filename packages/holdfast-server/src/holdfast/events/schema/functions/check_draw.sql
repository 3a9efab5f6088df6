-- What is always true of the draw of a queue or an event. These are no checks of the tables, because those cost each join
-- of the queue, and each settlement of the event.
create or replace function check_draw() returns trigger language plpgsql as $$
declare
    broken text = case
        when num_nonnulls(new.draw_at, new.draw_round, new.draw_round_at) not in (0, 3) or new.draw_round <= 0
        then 'a_draw_names_its_round'
        when new.draw_entries not between 0 and 2147483647 then tg_table_name || '_draw_entries_check'
        when new.drawn_at is not null and (new.draw_at is null or new.draw_entries is null)
        then 'only_a_frozen_list_is_drawn'
        when new.drawn_at is not null and new.draw_void_at is not null then 'a_void_draw_draws_nobody'
    end;
begin
    if broken is null and tg_table_name = 'events' then
        broken = case when new.draw_placed < 0 then 'events_draw_placed_check'
                      when new.draw_confirmed < 0 or new.draw_confirmed > new.draw_entries
                      then 'events_draw_confirmed_check' end;
    end if;
    if broken is not null then
        raise check_violation using
            message = format('The draw of %s %s breaks the rule %s.', rtrim(tg_table_name, 's'), new.id, broken),
            constraint = broken, table = tg_table_name;
    end if;
    return null;
end $$;
