-- A seat may be held: it counts, and belongs to the person once it is paid.
-- (A new value of an enumerated type can be used only after it was committed, so this file has nothing else.)
alter type registration_status add value 'held' before 'registered';
