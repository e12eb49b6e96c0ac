from pathlib import Path

from tasks.disk import find_shortage
from tasks.settings import Settings, WarehouseSettings


def with_least(home: Path, least_mb: float) -> Settings:
    settings = Settings(home, warehouse=WarehouseSettings(min_free_mb=least_mb))
    settings.folder.mkdir(parents=True)
    return settings


def test_enough_room_is_no_shortage(tmp_path):
    assert find_shortage(with_least(tmp_path, 0.0)) is None


def test_a_shortage_names_place_setting_and_way_out(tmp_path):
    said = find_shortage(with_least(tmp_path, 1e12))
    assert str(tmp_path) in said
    assert "warehouse.min_free_mb" in said
    assert "free some space" in said


def test_a_folder_that_is_gone_is_no_shortage(tmp_path):
    assert find_shortage(Settings(tmp_path / "gone")) is None
