-- The commitment to a person in a log, in base64url without padding. `commitment` of holdfast-verify must match.
create or replace function person_commitment(subject text, person text, nonce uuid) returns text language sql immutable
as $$
    select translate(encode(sha256(convert_to(E'holdfast/person/v1\n' || subject || E'\n' || person || E'\n', 'UTF8')
                                   || uuid_send(nonce)), 'base64'), '+/=', '-_')
$$;
