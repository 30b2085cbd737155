"""The code of an earlier commit, from this checkout's own history."""

import io
import subprocess
import tarfile
from pathlib import Path

from alembic.config import Config
from alembic.script import ScriptDirectory

from tests.support.horde import ROOT

VERSIONS = "migrations/versions"


def before_newest_migration() -> str | None:
    """The last commit of the main line without the newest migration; None where there is no history."""
    head = ScriptDirectory.from_config(Config(str(ROOT / "alembic.ini"))).get_revision("head")
    try:
        commits = _git("rev-list", "--first-parent", "HEAD").decode().split()
    except (OSError, subprocess.CalledProcessError):
        return None
    for commit in commits:
        names = _git("ls-tree", "--name-only", commit, f"{VERSIONS}/").decode().split()
        if f"{VERSIONS}/{head.revision}.py" not in names:
            return commit
    return None


def check_out(commit: str, folder: Path) -> Path:
    """Put the files of a commit into a folder."""
    folder.mkdir()
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit))) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout
