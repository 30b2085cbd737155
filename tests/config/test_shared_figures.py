"""Several processes behind one port get a folder for their counts without a setting."""

import os
from pathlib import Path

import pytest

from config.shared_figures import VARIABLE, shared_figures, shares_figures


def test_several_processes_get_a_folder_that_is_gone_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with shared_figures(2):
        folder = Path(os.environ[VARIABLE])
        assert folder.is_dir()
        (folder / "counter_1.db").touch()
    assert not folder.exists()
    assert not shares_figures()


def test_one_process_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with shared_figures(1):
        assert not shares_figures()


def test_a_folder_that_the_environment_names_is_used_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    with shared_figures(2):
        assert os.environ[VARIABLE] == str(tmp_path)
    assert tmp_path.is_dir()
