-- The smaller sizes of photos.

alter table photos
    add width integer check (width > 0),
    add height integer check (height > 0),
    add widths integer[] not null default '{}',
    add scaling_due timestamptz default now(),
    add scaling_tried integer not null default 0,
    add constraint a_size_is_not_wider_than_its_photo check (
        cardinality(widths) = 0 or (width is not null and height is not null and width >= all (widths)));
comment on column photos.width is 'Of the original, as it is shown: upright. Null until its sizes have been made.';
comment on column photos.widths is 'The widths of the sizes that are stored, ascending. None is stored that is not here, except while it is made.';
comment on column photos.scaling_due is 'From when its sizes may be made, once it is accepted; null when they are, or cannot be.';
comment on column photos.scaling_tried is 'How often its sizes were begun.';
create index photos_to_scale on photos (scaling_due) where state = 'accepted' and scaling_due is not null;
