"""Services for the end-to-end tests: started once a file, each test gets names of its own."""
import os
import sys

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/services"))
sys.path.insert(0, os.path.join(TOP, "tests/data"))

import hoglakes
import http_proxy
import lakes
import services
from hoglakes import hoglaked


@pytest.fixture(scope="session")
def kafka():
    with services.kafka_broker() as service:
        yield service


@pytest.fixture(scope="session")
def db():
    with services.postgres() as service:
        yield service


@pytest.fixture(scope="session")
def s3():
    with services.versitygw() as service:
        service.create_bucket("lake")
        yield service


@pytest.fixture(scope="session")
def toxi():
    with services.toxiproxy() as service:
        yield service


@pytest.fixture
def local_lake(tmp_path):
    """SQLite and local files."""
    return lakes.Lake("sqlite:%s/lake.sqlite" % tmp_path, "%s/data/" % tmp_path)


@pytest.fixture
def pg_lake(db, tmp_path):
    """PostgreSQL and local files."""
    return lakes.Lake(lakes.new_database(db), "%s/data/" % tmp_path, db=db)


@pytest.fixture
def s3_lake(db, s3):
    """PostgreSQL and S3."""
    return lakes.Lake(lakes.new_database(db), "s3://lake/%s/" % lakes.unique("data"), db=db, s3=s3)


@pytest.fixture(scope="session")
def hog(db, s3):
    """The hoglake catalog service."""
    database = lakes.unique("hoglake")
    db.create_database(database)
    with hoglaked.started("postgresql://127.0.0.1:%d/%s" % (db.port, database), s3) as server:
        yield server


@pytest.fixture
def hog_lake(hog, s3):
    return hoglakes.HogLake(hog, s3)


@pytest.fixture
def hog_proxied(hog, s3):
    """A hoglake behind a proxy before its catalog and one before its store."""
    with http_proxy.proxy("127.0.0.1", hog.port) as catalog, \
            http_proxy.proxy("127.0.0.1", s3.port) as store:
        lake = hoglakes.HogLake(hog, s3, catalog.url, store.url)
        lake.catalog_proxy, lake.store_proxy = catalog, store
        yield lake
