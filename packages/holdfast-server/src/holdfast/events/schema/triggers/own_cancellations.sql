-- What a change of a row causes:
--
-- * insert, update of passed_on_at: a seat that was passed on is counted in its event (count_passed_seats)

-- change --------------------------------------------------------------------------------------------------------------

-- The database itself counts the seats that were passed on, when the next person has the seat for good.
create or replace function count_passed_seats() returns trigger language plpgsql as $$
begin
    update events set seats_passed_on = seats_passed_on + 1 where id = new.event_id;
    return null;
end $$;

create or replace trigger count_seat_passed_at_once after insert on own_cancellations
    for each row when (new.passed_on_at is not null) execute function count_passed_seats();
create or replace trigger count_seat_passed_later after update of passed_on_at on own_cancellations
    for each row when (old.passed_on_at is null and new.passed_on_at is not null) execute function count_passed_seats();
