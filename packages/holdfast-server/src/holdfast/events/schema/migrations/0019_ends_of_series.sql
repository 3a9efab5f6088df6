-- An end that a change of the clocks has moved is back in the next occurrence of a series.

alter table events add clock_length interval;
comment on column events.clock_length is
    'Of an occurrence that a series made: how long after its beginning it ends, by the clocks of its time zone. It is valid only as long as the end follows from it. Null: as its own end says.';
