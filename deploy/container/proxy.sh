#!/bin/sh
# Starts Caddy with deploy/caddy/Caddyfile, for the names and the port of compose.yaml and one process of each service.
# For names that end with .localhost, Caddy signs the certificates itself.
set -eu
sed -e "s/^events\.example\.com {/events.localhost:$PORT {/" \
    -e "s/^inventory\.example\.com {/inventory.localhost:$PORT {/" \
    -e "s/10\.0\.0\.11:8001 10\.0\.0\.12:8001/inventory:8001/" \
    -e "s/10\.0\.0\.11:8002 10\.0\.0\.12:8002/events:8002/" /etc/caddy/Caddyfile >/tmp/Caddyfile
exec caddy run --adapter caddyfile --config /tmp/Caddyfile
