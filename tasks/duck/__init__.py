"""What the warehouse's writer and its readers share: DuckDB itself, lease, migrations, endpoint."""
