-- What a change of a row causes:
--
-- * update of widths: tells the pages of all events (tell_of_any_event)

-- tell ----------------------------------------------------------------------------------------------------------------

create or replace trigger tell_of_any_event after update of widths on photos
    for each row when (old.widths is distinct from new.widths) execute function tell_of_any_event();
