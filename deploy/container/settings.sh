#!/bin/sh
# Makes the secrets of compose.yaml at the first start, and keeps them at every later one. Each directory below /secrets is
# a volume, which only the containers mount that need it; they run as other users, so the files can be read by all of these.
set -eu
umask 022
cd /secrets

new_secret() {
    [ -s "$1" ] || { holdfast secret new | tail -n 1 >"$1.new" && mv "$1.new" "$1"; }
}
new_secret database/superuser
new_secret database/password
new_secret events/key
new_secret inventory/key

password=$(cat database/password)
for service in events inventory; do
    variable=$(echo "$service" | tr '[:lower:]' '[:upper:]')
    cat >"$service/.env" <<END_OF_FILE
${variable}_DATABASE_URL=postgresql://holdfast:$password@database:5432/$service
${variable}_SECRET_KEY=$(cat "$service/key")
END_OF_FILE
done
cat events/.env inventory/.env >both/.env
