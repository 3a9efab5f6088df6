-- Sizes of photos are made in turns of organizers, of each the latest photo first.

create index photos_to_scale_of_organizer on photos (coalesce(organizer_id, 0), scaling_due desc)
    where state = 'accepted' and scaling_due is not null;
