-- When the details of a registration were sent again.

alter table registrations add details_at timestamptz;
comment on column registrations.details_at is 'When its details were last sent again because somebody typed its address.';
