"""A Celery application whose one task answers with an entry in a list: the baseline of `bench.verdict`."""

import os

from celery import Celery
from redis import Redis

VARIABLE = "BENCH_NO_OP_REDIS"
QUEUE = "bench-no-op"
TASK = "bench.no_op"
KEPT_SECONDS = 60


def application(redis_url: str) -> Celery:
    """An application on this Redis, acknowledging late and keeping no results, as the horde's does."""
    made = Celery("bench", broker=redis_url, set_as_current=False)
    made.conf.update(result_backend=None, task_ignore_result=True, task_acks_late=True, worker_prefetch_multiplier=1)
    redis = Redis.from_url(redis_url)

    @made.task(name=TASK)
    def answer(key: str) -> None:
        pipeline = redis.pipeline(transaction=False)
        pipeline.rpush(key, b"1")
        pipeline.expire(key, KEPT_SECONDS)
        pipeline.execute()

    return made


def __getattr__(name: str) -> Celery:
    """The application of the process that Celery's command starts."""
    if name in {"app", "celery"}:
        return application(os.environ[VARIABLE])
    raise AttributeError(name)
