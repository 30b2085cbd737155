"""Names and queues of the Celery tasks, so that who sends one need not import it."""

from enum import StrEnum


class Queue(StrEnum):
    """Celery's queues (architecture A1): one a class of duration, instead of priorities."""

    VERDICT = "verdict"
    SETTLEMENT = "settlement"
    SCHEMA = "schema"
    UPKEEP = "upkeep"
    FETCH = "fetch"
    MEDIA = "media"


class TaskName(StrEnum):
    """Every task there is."""

    VERIFY_GENERATION = "verdict.verify_generation"
    PUBLISH_ENDED = "verdict.publish_ended"
    VERIFY_BY_SCHEMA = "schema.verify_generation"
    SETTLE_BATCH = "settlement.settle_batch"
    FOLD_BALANCES = "settlement.fold_balances"
    REVIEW_ESCROW = "settlement.review_escrow"
    REWARD_UPTIME = "settlement.reward_uptime"
    SWEEP = "upkeep.sweep"
    ERASE_BODIES = "upkeep.erase_bodies"
    REFRESH_QUEUE = "upkeep.refresh_queue"
    NOTE_MINUTE = "upkeep.note_minute"
    MEASURE_SPEEDS = "upkeep.measure_speeds"
    COUNT_GENERATIONS = "upkeep.count_generations"
    FORGET_MESSAGES = "upkeep.forget_messages"
    VACUUM_QUEUE = "upkeep.vacuum_queue"

    FETCH_IMAGES = "fetch.fetch_images"
    PREPARE_IMAGES = "media.prepare_images"
    OFFLOAD_MESSAGES = "media.offload_messages"
    DELETE_OBJECTS = "media.delete_objects"
    DELETE_ORPHANS = "media.delete_orphans"

    @property
    def queue(self) -> Queue:
        """The queue that this task is sent to: the first part of its name."""
        return Queue(self.value.partition(".")[0])
