"""DuckDB with its DuckLake, SQLite, PostgreSQL and S3 extensions, taken from Python packages.

`INSTALL ducklake` would ask a server. The same signed files come in the duckdb-extension-* packages
of tools/query-requirements.txt, and `LOAD 'file'` takes them as they are.
"""
import glob
import importlib.util
import os
import shutil

import duckdb

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def extension_files():
    """The files in the order in which they have to be loaded. DuckDB derives the entry point from
    the file's name, and the SQLite package's file is not called like its own: so all are copied."""
    folder = os.path.join(TOP, "build/env/duckdb-extensions")
    os.makedirs(folder, exist_ok=True)
    files = []
    for package, name in (("sqlite", "sqlite_scanner"), ("postgres_scanner", "postgres_scanner"),
                          ("httpfs", "httpfs"), ("ducklake", "ducklake")):
        target = os.path.join(folder, "%s-%s" % (name, duckdb.__version__))
        target = os.path.join(target, name + ".duckdb_extension")
        if not os.path.exists(target):
            spec = importlib.util.find_spec("duckdb_extension_" + package)
            source = glob.glob(os.path.join(spec.submodule_search_locations[0],
                                            "extensions/v%s/*.duckdb_extension" % duckdb.__version__))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            temporary = "%s.%d" % (target, os.getpid())
            shutil.copyfile(source[0], temporary)
            os.rename(temporary, target)  # several processes may do this at once
        files.append(target)
    return files


def connect():
    connection = duckdb.connect(config={"autoinstall_known_extensions": False,
                                        "autoload_known_extensions": False})
    for path in extension_files():
        connection.execute("LOAD '%s'" % path)
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def s3_secret(connection, environment):
    """Lets it into S3 by the settings that millpond takes, where its keys are set."""
    def text(name, otherwise=""):
        return environment.get("DUCKDB_S3_" + name, otherwise).replace("'", "''")

    if text("ACCESS_KEY_ID"):
        settings = [("KEY_ID", text("ACCESS_KEY_ID")), ("SECRET", text("SECRET_ACCESS_KEY")),
                    ("REGION", text("REGION")), ("ENDPOINT", text("ENDPOINT")),
                    ("USE_SSL", text("USE_SSL", "true")), ("URL_STYLE", text("URL_STYLE", "vhost"))]
        connection.execute("CREATE SECRET (TYPE s3, %s)" % ", ".join(
            "%s '%s'" % setting for setting in settings if setting[1]))


def attach(connection, catalog, **options):
    """Attaches the lake of "sqlite:PATH" or "postgres:CONNINFO" as `lake`."""
    listed = ", ".join("%s %s" % (key, value if isinstance(value, (bool, int))
                                  else "'%s'" % value.replace("'", "''"))
                       for key, value in options.items())
    connection.execute("ATTACH 'ducklake:%s' AS lake%s" %
                       (catalog.replace("'", "''"), " (%s)" % listed if listed else ""))
