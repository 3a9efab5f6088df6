-- Who makes the changes of this statement (see `changed_by` in log/model.py). An older version does not say it, nor an operator.
create or replace function changed_by() returns text language sql stable as $$
    select coalesce(nullif(current_setting('holdfast.changed_by', true), ''), 'organizer')
$$;
