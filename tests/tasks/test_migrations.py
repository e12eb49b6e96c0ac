"""Numbered migrations: each once, whole or not at all, and a copy kept before."""

import duckdb
import pytest

from models.errors import WarehouseError
from tasks.duck.migrations import migrate, read_migrations, read_views


@pytest.fixture
def folder(tmp_path):
    schema = tmp_path / "schema"
    (schema / "views").mkdir(parents=True)
    (schema / "0001_first.sql").write_text("CREATE TABLE a (x INTEGER);")
    (schema / "views" / "v.sql").write_text("CREATE OR REPLACE VIEW v AS SELECT * FROM a;")
    (schema / "notes.sql").write_text("this is no migration")
    return schema


@pytest.fixture
def bring(folder, tmp_path):
    """Migrate the database, as a start of the program does, and return rows of a query."""
    path = tmp_path / "test.duckdb"

    def run(query: str) -> list[tuple[object, ...]]:
        connection = duckdb.connect(str(path))
        try:
            connection = migrate(connection, path, lambda: duckdb.connect(str(path)), folder)
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    return run


def test_migrations_are_those_with_a_number_in_order(folder):
    (folder / "0010_later.sql").write_text("SELECT 1")
    (folder / "0002_sooner.sql").write_text("SELECT 1")
    assert [step.version for step in read_migrations(folder)] == [1, 2, 10]
    assert "VIEW v" in read_views(folder).sql


@pytest.mark.report("duckdb/duckdb#25395")
def test_a_later_migration_is_applied_to_what_is_there_and_a_copy_kept(bring, folder, tmp_path):
    bring("INSERT INTO a VALUES (7)")
    assert not (tmp_path / "backups").exists()
    (folder / "0002_second.sql").write_text("ALTER TABLE a ADD COLUMN y VARCHAR;")
    assert bring("SELECT x, y FROM a") == [(7, None)]
    assert bring("SELECT count(*) FROM schema_migrations") == [(3,)]
    (copy,) = (tmp_path / "backups").iterdir()
    assert copy.name.startswith("test-schema1-")
    with duckdb.connect(str(copy)) as connection:
        assert connection.execute("SELECT * FROM a").fetchall() == [(7,)]


def test_a_migration_that_fails_leaves_nothing_behind(bring, folder):
    bring("INSERT INTO a VALUES (7)")
    (folder / "0002_second.sql").write_text("CREATE TABLE b (y INTEGER); DROP TABLE nosuch;")
    with pytest.raises(WarehouseError, match="nosuch"):
        bring("SELECT 1")
    (folder / "0002_second.sql").write_text("CREATE TABLE b (y INTEGER);")
    assert bring("SELECT * FROM b") == []


def test_a_new_view_is_made_at_the_next_start(bring, folder):
    bring("SELECT * FROM v")
    (folder / "views" / "w.sql").write_text("CREATE OR REPLACE VIEW w AS SELECT 5 AS x;")
    assert bring("SELECT * FROM w") == [(5,)]
