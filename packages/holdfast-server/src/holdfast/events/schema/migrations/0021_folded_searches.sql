-- Both sides of a search are folded by one rule: what is searched is found as it is shown, and as people type it.
create function fold_text(whole text) returns text language plpgsql immutable strict parallel safe as $$
declare
    folded text;
begin
    if octet_length(whole) = length(whole) then
        return lower(whole);
    end if;
    -- A letter with marks becomes the letter and its marks. The marks are dropped, and what is not visible.
    folded := lower(regexp_replace(normalize(replace(whole, '´', ''''), nfkd),
        '[\u00AD\u0300-\u036F\u0483-\u0487\u0591-\u05C7\u0610-\u061A\u0640\u064B-\u065F\u0670\u06D6-\u06DC'
        '\u06DF-\u06E8\u06EA-\u06ED\u061C\u180B-\u180F\u1AB0-\u1AFF\u1DC0-\u1DFF\u200B-\u200F\u202A-\u202E'
        '\u2060-\u206F\u20D0-\u20FF\uFE00-\uFE0F\uFE20-\uFE2F\uFEFF]', '', 'g'));
    -- Letters that have no mark to drop, and punctuation that keyboards do not have.
    if folded ~ '[ßæœþøłđðħıŧŋĸƀɓƈɖɗƒɠɨƙƚɲɵƥƭʈʉʋƴƶɛɔəς’‘‚‛ʼʻʹʾʿ`′“”„«»‐‒–—―−⁃·•]' then
        folded := translate(folded,
            'øłđðħıŧŋĸƀɓƈɖɗƒɠɨƙƚɲɵƥƭʈʉʋƴƶɛɔəς’‘‚‛ʼʻʹʾʿ`′“”„«»‐‒–—―−⁃·•',
            'olddhitnkbbcddfgiklnopttuvyzeoeσ''''''''''''''''''''''"""""-------  ');
        folded := replace(replace(replace(replace(folded, 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th');
    end if;
    return normalize(folded, nfc);
end $$;
comment on function fold_text is
    'A text as searches compare it: NFKC, without case, accents and characters that are not visible.';

create function search_patterns(whole text) returns text[] language sql immutable strict parallel safe as $$
    select array(select '%' || replace(replace(replace(word, '\', '\\'), '%', '\%'), '_', '\_') || '%'
                   from regexp_split_to_table(fold_text(whole), '\s+') as word where word <> '')
$$;
comment on function search_patterns is
    'A pattern of `like` for each word of a text. A folded text that is like all of them contains all words.';

create function word_parts(event bigint, whole text) returns bigint[] language sql immutable strict parallel safe
    as $$
    select array(select distinct part from regexp_split_to_table(fold_text(whole), '\s+') as word
                  cross join unnest(parts(event, word)) as part)
$$;
comment on function word_parts is
    'The parts (`parts`) of the words of a text. Words of one or two characters have none.';

-- Found by the words as they were: the job writes them again when somebody searches.
truncate searched_registrations, searched_events;
comment on column searched_registrations.words is 'The address and the name, folded (`fold_text`).';
