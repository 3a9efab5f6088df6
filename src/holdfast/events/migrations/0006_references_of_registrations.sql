-- The functions `check_references` and `keep_...` replace these foreign keys, and cost less. They are applied right after
-- this. In between, whoever stores a registration has locked its event and its person (see `registrations/intake.py`).
alter table registrations
    drop constraint registrations_user_id_fkey,
    drop constraint registrations_event_id_fkey;
