-- Sessions of people whom a platform vouches for, inside whose pages they work.
alter table sessions drop constraint sessions_way_check;
alter table sessions add constraint sessions_way_check check (way in ('link', 'password', 'platform'));
