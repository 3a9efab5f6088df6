-- The functions `check_...` and `keep_...` replace these foreign keys, and cost less. They are applied right after this.
-- In between, whoever stores a registration or a visitor has locked what it names (see `registrations/intake.py` and
-- `queues/joining.py`).
alter table registrations
    drop constraint registrations_user_id_fkey,
    drop constraint registrations_event_id_fkey;
alter table queue_visitors drop constraint queue_visitors_queue_id_fkey;
