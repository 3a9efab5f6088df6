-- An operator who makes a link to sign in hands it over: it works in any browser, once.
alter table sign_in_links alter browser drop not null;
comment on column sign_in_links.browser is
    'The digest of the cookie of the browser that asked: only there the link works. Null: in any, an operator made it.';
