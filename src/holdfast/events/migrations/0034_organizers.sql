-- Organizers are few among the people; their list reads none of the others.

create index organizers on users (id) where role = 'organizer';
