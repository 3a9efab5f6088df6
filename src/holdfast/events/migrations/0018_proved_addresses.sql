-- Whoever follows a link in a mail proves the address. Before that, anybody could have made its account.
alter table users add proved_at timestamptz;
comment on column users.proved_at is 'When the owner of the address proved it, and kept or ended the keys and the password
that had been made before.';
