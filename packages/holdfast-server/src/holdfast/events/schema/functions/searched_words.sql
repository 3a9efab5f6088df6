-- What a search for a person looks through.
create or replace function searched_words(email text, name text) returns text language sql immutable parallel safe as
    $$ select fold_text(coalesce(email, '') || ' ' || coalesce(name, '')) $$;
