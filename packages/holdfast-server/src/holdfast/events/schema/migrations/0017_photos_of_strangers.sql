-- How much the photos of organizers may take that have not proved their address: each, all of one network, and all of them.
alter table users add registered_from text[];
comment on column users.registered_from is
    'Hashes of the networks from which an organizer was registered; null once its address is proved, and of others.';
alter table photos add networks text[];
comment on column photos.networks is
    'The networks whose share of photos of unproved organizers it takes from; null if it counts for none.';
create index photos_of_strangers on photos (idle_since) include (organizer_id, networks, content_length)
    where networks is not null;
