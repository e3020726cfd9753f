"""Services for the end-to-end tests: started once a file, each test gets names of its own."""
import os
import sys

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests/services"))
sys.path.insert(0, os.path.join(TOP, "tests/data"))

import lakes
import services


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
