-- The outcome of a registration form is shown to the browser that sent the form (docs/decisions/0031).

alter table registrations add form_digest uuid;
comment on column registrations.form_digest is
    'The digest of the secret of the form that made the registration; null: no form did, or the person was erased.';
