-- What a change of a row causes:
--
-- * insert, update of taken_at: a seat that was taken is counted in its event (count_passed_seats)

-- count ---------------------------------------------------------------------------------------------------------------

-- The database itself counts the seats that were passed on, when the next person has the seat for good.
create or replace function count_passed_seats() returns trigger language plpgsql as $$
begin
    update events set seats_passed_on = seats_passed_on + 1 where id = new.event_id;
    return null;
end $$;

create or replace trigger count_seat_passed_at_once after insert on given_up_places
    for each row when (new.taken_at is not null) execute function count_passed_seats();
create or replace trigger count_seat_passed_later after update of taken_at on given_up_places
    for each row when (old.taken_at is null and new.taken_at is not null) execute function count_passed_seats();
