"""Celery's settings, each unusual value with its reason (architecture A4)."""

from kombu.entity import Queue as KombuQueue

from app.adapters.redis_transport import use_for_redis
from app.domain.task_names import Queue, TaskName
from config.setting_types import AMQP
from config.settings import get_settings

_settings = get_settings()

broker_url = _settings.celery_broker_url
# A process outlives a broker that goes away while a task runs.
use_for_redis()
# A broker that is away is waited for without end: the rows hold the work meanwhile.
broker_connection_retry_on_startup = True
broker_connection_max_retries = None
broker_channel_error_retry = True
broker_connection_timeout = 3
_is_rabbitmq = broker_url.startswith(AMQP)
_OF_REDIS = {
    # Twice the longest hard limit, at least 300 s: a copy must not start while the first still runs.
    "visibility_timeout": 300,
    # The default restores an unacknowledged message minutes late; these make it seconds.
    "unacked_restore_interval": 10,
    "unacked_restore_throttle": 1,
    # A frozen Redis must raise in a publisher instead of blocking it for ever.
    "socket_timeout": 3,
    "socket_connect_timeout": 3,
    "socket_keepalive": True,
    "health_check_interval": 10,
}
# RabbitMQ gives back what a lost consumer had not acknowledged; only its freezing has to be bounded.
_OF_RABBITMQ = {"write_timeout": 3}
broker_transport_options = _OF_RABBITMQ if _is_rabbitmq else _OF_REDIS
# A publisher tries once more and gives up: the sweep takes over (A4: publishing never blocks a request).
task_publish_retry = True
task_publish_retry_policy = {"max_retries": 1, "interval_start": 0, "interval_step": 0.1, "interval_max": 0.1}

# State lives in PostgreSQL; a result backend would hold a channel for each unread result.
result_backend = None
task_ignore_result = True
accept_content = ["json"]
task_serializer = "json"

# A message is acknowledged when its work is done, so a killed process leaves it to be run again.
task_acks_late = True
# A child killed in its task is retried with a cap; rejecting instead would loop for ever on a poison task.
task_retry_on_worker_lost = True
task_reject_on_worker_lost = False
task_soft_time_limit = 20
task_time_limit = 30

task_queues = [KombuQueue(queue.value) for queue in Queue]
task_routes = {task.value: {"queue": task.queue.value} for task in TaskName}
# A misspelt queue fails at once instead of swallowing messages that nobody reads.
task_create_missing_queues = False

# A busy process must not sit on messages that an idle one could run: it takes no more than it runs. Celery can do
# that on Redis alone; with RabbitMQ one message waits beside the one that runs.
worker_disable_prefetch = not _is_rabbitmq
# No second limit beside it. That one counts messages which are not acknowledged, and an acknowledgement that a
# frozen Redis did not take would use its place up for good: a process of one child never heard its queue again.
worker_prefetch_multiplier = 1 if _is_rabbitmq else 0
# Off: a task that outlives a lost connection ends and is run again harmlessly; killing it strands its message.
worker_cancel_long_running_tasks_on_connection_loss = False
# SIGTERM (remapped to SIGQUIT in the Procfile's environment) leaves running tasks 20 of the platform's 30 s.
worker_soft_shutdown_timeout = 20
# Memory is flat (bench/soak.py); these are for the day when it is not. A successor takes a fifth of a second, with
# a pool of ours that puts it in its place at once; Celery's own may take five.
worker_pool = "tasks.pool:TaskPool"
worker_max_tasks_per_child = 20_000
worker_max_memory_per_child = 400_000
worker_hijack_root_logger = False
# Flower turns events on by remote control while it watches; unwatched, they cost nothing.
worker_send_task_events = False
worker_enable_remote_control = True

# Beat's own file of last runs is not needed: every periodic task works off state (A1).
beat_max_loop_interval = 1
# Celery's own falls silent when the clock is put back.
beat_scheduler = "tasks.scheduler:SteadyScheduler"
timezone = "UTC"
