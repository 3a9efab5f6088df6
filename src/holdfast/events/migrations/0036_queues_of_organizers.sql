-- If one organizer has nearly all queues, PostgreSQL expects the same of every other one, and looks for the queues of
-- an organizer without any among all there are. Told that organizers have few, it reads the index of their queues.

alter table queues alter column organizer_id set (n_distinct = -0.1);
