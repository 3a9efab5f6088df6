-- Which events a person is registered for: a handle works only for those who are known to the organizer.
create index registrations_of_user on registrations (user_id);
