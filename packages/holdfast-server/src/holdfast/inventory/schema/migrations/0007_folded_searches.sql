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

create function search_pattern(whole text) returns text language sql immutable strict parallel safe as $$
    select '%' || replace(replace(replace(fold_text(whole), '\', '\\'), '%', '\%'), '_', '\_') || '%'
$$;
comment on function search_pattern is 'The pattern of `like` for folded texts that contain a text.';

drop index pools_by_parts, variants_by_parts, catalog_variants_by_parts;
create index pools_by_parts on pools using gin (parts(shop_id, fold_text(name_key)))
    with (gin_pending_list_limit = 512);
create index variants_by_parts on variants using gin (parts(shop_id, fold_text(searched)))
    with (gin_pending_list_limit = 512);
create index catalog_variants_by_parts on catalog_variants using gin (parts(shop_id, fold_text(searched)))
    with (gin_pending_list_limit = 512);
