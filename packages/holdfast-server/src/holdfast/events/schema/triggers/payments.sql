-- What a change of a row causes:
--
-- * insert: tells the pages of organizers (tell_of_event_details)
-- * update: the same (tell_of_event_details)

-- tell ----------------------------------------------------------------------------------------------------------------

create or replace trigger tell_of_new_payments after insert on payments referencing new table as changed
    for each statement execute function tell_of_event_details();
create or replace trigger tell_of_changed_payments after update on payments referencing new table as changed
    for each statement execute function tell_of_event_details();
