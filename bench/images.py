"""What images cost: from a submit to the queue, and images a second of one media process against Pillow alone.

    python -m bench.images [--requests 40] [--rounds 20]

Starts a throw-away horde with its own S3 store. Pillow alone decodes the same bytes to
the same size and quality in this process; the ratio is the share of its speed that a
media process reaches with fetching from the store, its child, storing and SQL.
"""

import argparse
import tempfile
import time
from io import BytesIO
from pathlib import Path
from statistics import median

from PIL import Image

from bench.report import Figure, tell
from bench.roundtrip import start
from tests.flows.images.seeing import Seeing
from tests.support.horde import HordeProcesses
from tests.support.pictures import data_url, noise
from tests.support.services import LocalServices, wait_until

LONGEST_SIDE = 2048
QUALITY = 90
WARM_UP = 3
FIGURES = {"4 MP PNG": "image_png", "12 MP JPEG": "image_jpeg"}
PATIENCE_SECONDS = 600
QUEUED = "SELECT count(*) FROM queue_entries q JOIN request_media m ON m.request_id = q.request_id"


def pillow_alone(data: bytes, times: int) -> float:
    """Images a second that Pillow decodes, scales and saves in this process."""
    began = time.perf_counter()
    for _ in range(times):
        image: Image.Image = Image.open(BytesIO(data))
        image.draft(None, (2 * LONGEST_SIDE, 2 * LONGEST_SIDE))
        image.load()
        image = image.convert("RGB")
        image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.BICUBIC, reducing_gap=2.0)
        image.save(BytesIO(), "JPEG", quality=QUALITY)
    return times / (time.perf_counter() - began)


def queued(horde: HordeProcesses) -> int:
    """Requests with images that are in the queue."""
    return int(str(horde.query(QUEUED)[0][0]))


def media_process(seeing: Seeing, data: bytes, media_type: str, requests: int) -> float:
    """Images a second that one media process prepares when it has enough to do."""
    horde, url, before = seeing.horde, data_url(data, media_type), queued(seeing.horde)
    horde.kill("media")
    for _ in range(requests):
        answer = seeing.ask(url)
        if answer.status != 202:
            raise RuntimeError(f"{answer.status}: {answer.body}")
    horde.start("media")
    wait_until(lambda: queued(horde) >= before + WARM_UP, PATIENCE_SECONDS, "nothing is prepared")
    first, began = queued(horde), time.perf_counter()
    wait_until(lambda: queued(horde) == before + requests, PATIENCE_SECONDS, "not everything is prepared")
    return (before + requests - first) / (time.perf_counter() - began)


def submit_to_queued(seeing: Seeing, data: bytes, rounds: int) -> list[float]:
    """Seconds from sending a request with this PNG to its entry into the queue, one after the other."""
    taken, url = [], data_url(data)
    for _ in range(rounds):
        before, began = queued(seeing.horde), time.perf_counter()
        answer = seeing.ask(url)
        if answer.status != 202:
            raise RuntimeError(f"{answer.status}: {answer.body}")
        wait_until(lambda before=before: queued(seeing.horde) > before, PATIENCE_SECONDS, "not queued")  # type: ignore[misc]
        taken.append(time.perf_counter() - began)
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parser.parse_args()
    samples = {
        "4 MP PNG": (noise((2400, 1700), "PNG"), "image/png"),
        "12 MP JPEG": (noise((4000, 3000), quality=85), "image/jpeg"),
    }
    with LocalServices({}) as services, tempfile.TemporaryDirectory() as folder:
        horde = start(services, Path(folder))
        try:
            seeing = Seeing(horde)
            seeing.worker("url")
            png = samples["4 MP PNG"][0]
            times = submit_to_queued(seeing, png, chosen.rounds)
            alone = 1 / pillow_alone(png, 5)
            print(
                f"4 MP PNG ({len(png) / 2**20:.1f} MiB), submit to queued: p50 {median(times) * 1e3:.0f} ms,"
                f" {median(times) / alone:.1f} times Pillow alone ({alone * 1e3:.0f} ms)"
            )
            for name, (data, media_type) in samples.items():
                alone = pillow_alone(data, 10)
                process = media_process(seeing, data, media_type, chosen.requests)
                tell(Figure(FIGURES[name], process / alone))
                print(f"{name}: {process:.1f} images/s, Pillow alone {alone:.1f}, ratio {process / alone:.2f}")
        finally:
            horde.close()


if __name__ == "__main__":
    main()
