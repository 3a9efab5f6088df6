-- Every process hears which events have changed, and so can keep what their pages show.
create function tell_of_changed_events() returns trigger language plpgsql as $$
begin
    perform pg_notify('holdfast', 'events ' || id) from changed;
    return null;
end $$;
create trigger tell_of_changed_events after update on events referencing new table as changed
    for each statement execute function tell_of_changed_events();

-- What several events may show: an organizer's name, the sizes of a photo.
create function tell_of_any_event() returns trigger language plpgsql as $$
begin
    perform pg_notify('holdfast', 'events ');
    return null;
end $$;
create trigger tell_of_any_event after update of name, slug on users
    for each row when (old.slug is not null and (old.name, old.slug) is distinct from (new.name, new.slug))
    execute function tell_of_any_event();
create trigger tell_of_any_event after update of widths on photos
    for each row when (old.widths is distinct from new.widths) execute function tell_of_any_event();
