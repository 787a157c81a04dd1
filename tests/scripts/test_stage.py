"""`scripts/stage.py`: the staged folder has the layout that OpenEnv's tools demand, and is safe to write."""

import subprocess
import sys
from pathlib import Path

from openenv.cli._cli_utils import validate_env_structure

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "stage.py"


def _stage(target: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(SCRIPT), str(target)], capture_output=True, text=True, check=False)


def test_staged_tree_passes_openenvs_structure_check(tmp_path: Path) -> None:
    target = tmp_path / "stage"

    assert _stage(target).returncode == 0
    assert validate_env_structure(target) == ["Recommended directory missing: outputs/"]


def test_staging_twice_replaces_the_first_copy(tmp_path: Path) -> None:
    target = tmp_path / "stage"
    _stage(target)
    (target / "server" / "left_over.py").write_text("")

    assert _stage(target).returncode == 0
    assert not (target / "server" / "left_over.py").exists()


def test_a_folder_of_someone_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")

    assert _stage(tmp_path).returncode != 0
    assert (tmp_path / "thesis.txt").read_text() == "years of work"
