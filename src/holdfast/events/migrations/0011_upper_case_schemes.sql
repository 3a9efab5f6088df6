-- The scheme of an address may be written in upper case.
alter table queues drop constraint queues_target_url_check;
alter table queues add constraint queues_target_url_check check (target_url ~* '^https?://');
