#!/bin/sh
# Makes the user and the two databases. The image of PostgreSQL runs it once, when its volume is empty. The user may make
# roles, and is no superuser.
set -eu
psql --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres <<'END_OF_SQL'
\set password `cat "$PASSWORD_FILE"`
create role holdfast login createrole password :'password';
create database inventory owner holdfast encoding 'UTF8' template template0;
create database events owner holdfast encoding 'UTF8' template template0;
END_OF_SQL
