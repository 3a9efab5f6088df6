-- The kind of mail that a change of a registration causes; null: none.
-- `python -m tests.programs.schema` makes this from `mails/kinds.py`.
create or replace function mail_kind(before text, after text) returns text language sql immutable as $$
    select case before || ' ' || after
           when 'pending in_draw' then 'confirm'
           when 'in_draw repeated' then 'confirm'
           when 'pending registered' then 'seat'
           when 'in_draw registered' then 'seat'
           when 'held registered' then 'seat'
           when 'rejected registered' then 'seat'
           when 'registered repeated' then 'seat_again'
           when 'waitlisted registered' then 'promoted'
           when 'pending waitlisted' then 'waitlisted'
           when 'in_draw waitlisted' then 'waitlisted'
           when 'registered waitlisted' then 'waitlisted'
           when 'waitlisted repeated' then 'waitlisted_again'
           when 'waitlisted held' then 'payment_due'
           when 'in_draw held' then 'payment_due'
           when 'pending rejected' then 'refused'
           when 'in_draw rejected' then 'refused'
           when 'held rejected' then 'refused'
           when 'in_draw removed' then 'removed'
           when 'registered removed' then 'removed'
           when 'held removed' then 'removed'
           when 'waitlisted removed' then 'removed' end
$$;
