#!/usr/bin/env python3
"""What build/hoglaked finds about its database, each fault made in a cluster of its own."""
import os
import shutil
import subprocess
import sys
import time

import hoglaked
import services
from judge_rest import lake, ok


def test_database_health_finds_what_has_to_be_done():
    with services.postgres(fsync="on", autovacuum="off") as own:
        own.create_database("hoglake")
        own.create_database("plain")
        own.query("hoglake", "CREATE ROLE plain LOGIN")
        own.query("hoglake", "ALTER DATABASE plain OWNER TO plain")
        with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % own.port) as server:
            health = lambda: ok(server, "GET", "/database/health")
            found = lambda: [(f["kind"], f["object"]) for f in health()["findings"]]
            calm = health()
            assert calm["findings"] == calm["blind_spots"] == calm["replication_slots"] == [], calm
            assert calm["server"]["fsync"] == "on" and calm["activity"]["connections_max"] == 200, calm
            index = [i for i in calm["indexes"] if i["name"] == "hog_data_file_path"][0]
            assert index["table"] == "hog_data_file" and index["valid"] and index["size_bytes"] == 8192, index
            assert {i["table"] for i in calm["indexes"]} == {t["name"] for t in calm["tables"]}
            valid = lambda value: own.query("hoglake", "UPDATE pg_index SET indisvalid = " + value +
                                            " WHERE indexrelid = 'hog_data_file_path'::regclass")
            valid("false")
            assert found() == [("invalid_index", "hog_data_file_path")], found()
            valid("true")
            own.query("hoglake", "SELECT pg_create_physical_replication_slot('left_behind', true)")
            lake(server)
            assert found() == [("inactive_replication_slot", "left_behind")], found()
            slot = health()["replication_slots"][0]
            assert (slot["name"], slot["type"], slot["active"]) == ("left_behind", "physical", False), slot
            assert slot["retained_wal_bytes"] > 0, slot
            own.query("hoglake", "SELECT pg_drop_replication_slot('left_behind')")
            with hoglaked.started("postgresql://127.0.0.1:%d/plain" % own.port, HOGLAKE_DB_USER="plain") as blind:
                lake(blind)
                assert ok(blind, "GET", "/database/health")["blind_spots"] == []
                other = own.connect("plain")
                own.query("plain", "REVOKE SELECT ON pg_replication_slots FROM PUBLIC")
                seen = ok(blind, "GET", "/database/health")
                assert seen["blind_spots"] == ["activity", "replication_slots"], seen
                assert seen["replication_slots"] == seen["findings"] == [] and seen["indexes"], seen
                own.query("plain", "GRANT pg_monitor TO plain")
                assert ok(blind, "GET", "/database/health")["blind_spots"] == ["replication_slots"]
                other.close()
            idle = own.connect("hoglake")
            idle.autocommit = False
            began = time.monotonic()
            idle.cursor().execute("SELECT 1")
            services.wait_until(found, 180, "the open transaction is found", 1)
            assert time.monotonic() - began > 60
            assert found() == [("idle_in_transaction", str(idle.info.backend_pid))], found()
            idle.close()


def test_database_health_finds_old_transaction_ids():
    """A cluster that was told to go on far ahead, and one that does not wait for its disk."""
    far = 1200000000
    # without a vacuum that makes them young again at once
    with services.postgres(autovacuum="off", autovacuum_freeze_max_age="2000000000") as own:
        own.create_database("hoglake")
        own.stop()
        segment = os.path.join(own.data, "pg_xact", "%04X" % (far // (32 * 8192 * 4)))
        with open(segment, "wb") as zeros:
            zeros.write(bytes(32 * 8192))
        if own.user:
            shutil.chown(segment, own.user)
        subprocess.run([services._postgres_binary("pg_resetwal"), "-x", str(far), "-D", own.data], user=own.user,
                       check=True, capture_output=True, cwd=own.directory, env={"PATH": "/usr/bin:/bin"})
        own.start()
        with hoglaked.started("postgresql://127.0.0.1:%d/hoglake" % own.port) as server:
            seen = ok(server, "GET", "/database/health")
            assert [f["kind"] for f in seen["findings"]] == ["transaction_id_age", "fsync_off"], seen["findings"]
            assert seen["server"]["transaction_id_age"] > 10 ** 9 and seen["server"]["fsync"] == "off"


def main():
    cases = [(name, value) for name, value in globals().items() if name.startswith("test_")]
    passed, failed = hoglaked.run_cases([(name, lambda _, case=case: case()) for name, case in cases], lambda: None)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
