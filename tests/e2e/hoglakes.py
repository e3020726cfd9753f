"""A hoglake catalog as the end-to-end tests see it: through REST, and its files through the disk of
the S3 server."""
import http.client
import json
import os
import sys

import pyarrow.parquet as pq

import lakes
import services

sys.path.insert(0, os.path.join(services.TOP, "tests/server"))
import hoglaked  # noqa: E402

NAMESPACE, TABLE, BUCKET = "analytics", "events", "lake"


class HogLake:
    """A catalog of its own, not made yet. url and endpoint: where millpond is sent, the server and
    the store themselves or proxies before them."""

    def __init__(self, server, s3, url=None, endpoint=None):
        self.server, self.s3 = server, s3
        self.url, self.endpoint = url or server.url, endpoint or s3.endpoint
        self.catalog = lakes.unique("hog")
        self.data_path = "s3://%s/%s/" % (BUCKET, self.catalog)
        self.path = "/catalogs/%s" % self.catalog
        self.table_path = "%s/namespaces/%s/tables/%s" % (self.path, NAMESPACE, TABLE)

    def env(self, **more):
        env = {"MILLPOND_DESTINATION": "hoglake", "HOGLAKE_URL": self.url,
               "HOGLAKE_CATALOG": self.catalog, "HOGLAKE_NAMESPACE": NAMESPACE,
               "HOGLAKE_TABLE": TABLE, "HOGLAKE_DATA_PATH": self.data_path,
               "HOGLAKE_S3_ENDPOINT": self.endpoint, "HOGLAKE_S3_REGION": self.s3.region,
               "HOGLAKE_S3_ACCESS_KEY": self.s3.access_key,
               "HOGLAKE_S3_SECRET_KEY": self.s3.secret_key, "DUCKLAKE_TABLE": None}
        return dict(env, **more)

    def ask(self, method, path, body=None):
        return hoglaked.request(self.server.url + "/v1" + path, method, body)[:2]

    def ok(self, method, path, body=None):
        status, answer = self.ask(method, path, body)
        assert status in (200, 201), (method, path, status, answer)
        return answer

    def info(self):
        return self.ok("GET", self.table_path)

    def alter(self, *ops):
        return self.ok("POST", self.table_path + "/alter", {"ops": list(ops)})

    def drop(self):
        status, answer = self.ask("DELETE", self.table_path)
        assert status in (200, 204), answer

    def options(self, **values):
        return self.ok("PATCH", self.path + "/options", values)

    def head(self):
        """The newest snapshot's id; -1 while there is no catalog."""
        status, answer = self.ask("GET", self.path)
        return answer["head_snapshot_id"] if status == 200 else -1

    def watch(self):
        """Gives a function that tells the newest snapshot's id over one kept connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=10)

        def newest():
            connection.request("GET", "/v1" + self.path)
            answer = connection.getresponse()
            body = answer.read()
            return json.loads(body)["head_snapshot_id"] if answer.status == 200 else -1

        return newest

    def files(self):
        """The live files, as the catalog describes them; none while there is no table."""
        status, answer = self.ask("GET", self.table_path + "/files")
        assert status in (200, 404), answer
        return answer if status == 200 else []

    def rows(self):
        return sum(file["record_count"] for file in self.files())

    def on_disk(self, path):
        assert path.startswith("s3://"), path
        return os.path.join(self.s3.root, path[len("s3://"):])

    def read(self, file, columns=None):
        return pq.read_table(self.on_disk(file["path"]), columns=columns)

    def numbers(self, column="n"):
        """That column of every live file, in order."""
        values = []
        for file in self.files():
            values += self.read(file, [column])[column].to_pylist()
        return sorted(values)

    def messages(self):
        """Commit messages, oldest first."""
        page = self.ok("GET", self.path + "/snapshots?after=0&limit=1000")
        return [entry.get("message") for entry in page["snapshots"] if entry.get("message")]

    def objects(self):
        """Parquet objects in the store, known to the catalog or not."""
        bucket, prefix = self.data_path[len("s3://"):].split("/", 1)
        return set("s3://%s/%s" % (bucket, key) for key in self.s3.keys(bucket, prefix)
                   if key.endswith(".parquet"))

    def check_numbers(self, want, column="n"):
        """Each of these numbers is in the table once, and no other."""
        found, want = self.numbers(column), sorted(want)
        assert len(found) == len(set(found)), "%d rows are there twice" % (len(found) -
                                                                           len(set(found)))
        assert found == want, "%d rows, not %d" % (len(found), len(want))


def group_of(topic, table=TABLE):
    return "millpond-hoglake-%s-%s" % (topic, table)


def check_offsets(kafka, topic, partitions):
    """Kafka's committed offsets stand at the end of each partition."""
    for partition in range(partitions):
        high = kafka.watermarks(topic, partition)[1]
        offset = kafka.committed(group_of(topic), topic, partition)[0]
        assert (offset or 0) == high, (partition, offset, high)
