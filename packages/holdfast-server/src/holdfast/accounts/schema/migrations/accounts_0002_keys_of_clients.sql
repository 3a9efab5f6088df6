-- How a client proves who it is when it asks for tokens. The keys of a client are public.

alter table oauth_clients
    add column auth_methods text[] not null default '{none}'
        check (cardinality(auth_methods) > 0 and auth_methods <@ '{none,private_key_jwt}'),
    add column jwks jsonb check (jsonb_typeof(jwks) = 'array'),
    add column jwks_uri text check (length(jwks_uri) <= 500),
    add check (num_nonnulls(jwks, jwks_uri) = ('private_key_jwt' = any(auth_methods))::int);
comment on column oauth_clients.auth_methods is
    'What is accepted as its proof at the token endpoint: nothing but PKCE, or an assertion that it has signed.';
comment on column oauth_clients.jwks is 'The keys in its metadata document.';
comment on column oauth_clients.jwks_uri is 'The address of its keys, if the document has none itself.';
