#!/bin/sh
# pg_server.sh COMMAND [ARGUMENT...] - runs COMMAND beside a PostgreSQL server of its own.
#
# The server lives in a temporary directory, listens on a socket in it and nowhere else, and is
# stopped by its process id. COMMAND finds it in MP_TEST_POSTGRES, a libpq connection string.
# PG_BIN names the directory of initdb and postgres where it is none of the usual ones.
# Exit status 77 (skipped, for meson): there is no PostgreSQL.
set -eu

for directory in "${PG_BIN:-}" /usr/lib/postgresql/*/bin /usr/local/pgsql/bin; do
    [ -x "$directory/initdb" ] && [ -x "$directory/postgres" ] && PG_BIN=$directory && break
done
[ -n "${PG_BIN:-}" ] || { echo "no PostgreSQL found; set PG_BIN" >&2; exit 77; }

base=$(mktemp -d /tmp/lake-pg-XXXXXX)
server=
cleanup() {
    [ -n "$server" ] && kill -INT "$server" 2>/dev/null && wait "$server" 2>/dev/null
    rm -rf "$base"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# PostgreSQL does not run as root.
as=
if [ "$(id -u)" = 0 ]; then
    user=postgres
    id "$user" >/dev/null 2>&1 || user=nobody
    as="setpriv --reuid=$(id -u $user) --regid=$(id -g $user) --clear-groups"
    chown "$user" "$base"
    chmod 711 "$base"
fi

cd "$base"
$as "$PG_BIN/initdb" -D "$base/data" -U millpond -A trust -E UTF8 --locale=C -N \
    >"$base/initdb.log" 2>&1 || { cat "$base/initdb.log" >&2; exit 1; }
# fsync stays on where MP_TEST_PG_FSYNC says so, for measurements
$as "$PG_BIN/postgres" -D "$base/data" -c listen_addresses= -c unix_socket_directories="$base" \
    -c fsync="${MP_TEST_PG_FSYNC:-off}" -c max_connections=100 -c shared_buffers=64MB \
    -c lc_messages=C -c log_min_messages=fatal ${MP_TEST_PG_OPTIONS:-} >"$base/server.log" 2>&1 &
server=$!
cd - >/dev/null

MP_TEST_POSTGRES="host=$base port=5432 user=millpond dbname=postgres"
export MP_TEST_POSTGRES
tries=0
until "$PG_BIN/psql" "$MP_TEST_POSTGRES" -qAtc 'SELECT 1' >/dev/null 2>&1; do
    tries=$((tries + 1))
    kill -0 "$server" 2>/dev/null && [ $tries -lt 1200 ] || { cat "$base/server.log" >&2; exit 1; }
    sleep 0.1
done
export PG_BIN

set +e
"$@"
status=$?
exit $status
