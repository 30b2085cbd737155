"""What the horde delivered: counted once by a task, read by period (native-api N2, decision 0057).

The count goes on from where it stopped, so its cost follows what ended since. A generation whose
transaction is still open is not passed by: the count stops before the oldest open one.
"""

from sqlalchemy import text

from app.domain.periods import KEPT, SPANS, Period
from app.services.aborts import NOT_THE_WORKERS
from app.services.runtime import Runtime

MOST_STEPS = 100
"""Hours that one turn of the task makes up for; the rest follows with the next turns."""

_STEPS = {Period.MINUTE: "1 minute", Period.HOUR: "1 hour", Period.DAY: "1 day"}


def count_generations(runtime: Runtime) -> int:
    """Count what ended since the last time; return how many steps of at most an hour that took."""
    with runtime.database.statements() as transaction:
        safe = transaction.execute(_SAFE).scalar_one()
        steps = 0
        while steps < MOST_STEPS:
            reached = transaction.execute(
                _COUNT, {"safe": safe, "periods": [*Period], "innocent": sorted(NOT_THE_WORKERS)}
            ).scalar_one_or_none()
            if reached is None:
                break
            steps += 1
        transaction.execute(_FORGET)
    return steps


class Statistics:
    """The use cases of `/stats/text/*`."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database

    def totals(self) -> dict[str, dict[str, int]]:
        """Return generations delivered and their tokens, over rolling spans that end now."""
        with self._database.statements() as transaction:
            rows = transaction.execute(_TOTALS).all()
        counted = {row.span: {"requests": int(row.requests), "tokens": int(row.tokens)} for row in rows}
        return {period.value: counted.get(period.value, {"requests": 0, "tokens": 0}) for period in Period}

    def models(self) -> dict[str, dict[str, int]]:
        """Return generations delivered by model, over the last day, the last thirty, and ever."""
        shown: dict[str, dict[str, int]] = {period.value: {} for period in (Period.DAY, Period.MONTH, Period.TOTAL)}
        with self._database.statements() as transaction:
            for row in transaction.execute(_MODELS):
                shown[row.span][row.model] = int(row.requests)
        return shown


def _spans(*wanted: Period) -> str:
    """SQL of rows with their weight: of a period that only in part lies in the span, that part."""
    values = ", ".join(
        f"('{span}', '{SPANS[span][0]}', interval '{SPANS[span][1]}', interval '{_STEPS[SPANS[span][0]]}')"
        for span in wanted
    )
    return f"""
        SELECT s.span, m.model, least(1.0, greatest(0.0,
                   extract(epoch FROM m.starts_at + s.step - (now() - s.length)) / extract(epoch FROM s.step)
               )) AS weight, m.requests, m.tokens
        FROM (VALUES {values}) s (span, period, length, step)
        JOIN model_statistics m ON m.period = s.period AND m.starts_at > now() - s.length - s.step
        UNION ALL
        SELECT 'total', m.model, 1.0, m.requests, m.tokens FROM model_statistics m WHERE m.period = 'total'
    """  # noqa: S608 - joined from constants


# The oldest transaction of ours that is open bounds what may still be committed with an earlier time.
# A second is for the moment between a transaction's begin and its entry in this view.
_SAFE = text(
    """
    SELECT least(now(), min(xact_start)) - interval '1 second'
    FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'horde-%' AND pid <> pg_backend_pid()
    """
)

_COUNT = text(
    """
    WITH step AS (
        SELECT h.at AS since, least(CAST(:safe AS timestamptz), h.at + interval '1 hour') AS until
        FROM heartbeats h WHERE h.name = 'statistics' AND h.at < CAST(:safe AS timestamptz)
        FOR UPDATE
    ), moved AS (
        UPDATE heartbeats h SET at = step.until FROM step WHERE h.name = 'statistics'
        RETURNING step.since, step.until
    ), ended AS (
        SELECT g.worker_id, g.model, g.ended_at, g.tokens, g.reward, g.fault,
               g.state IN ('verified', 'settled') AS delivered
        FROM generations g
        WHERE g.ended_at > (SELECT since FROM moved) AND g.ended_at <= (SELECT until FROM moved)
    ), by_model AS (
        INSERT INTO model_statistics (period, starts_at, model, requests, tokens)
        SELECT p.period,
               CASE WHEN p.period = 'total' THEN to_timestamp(0) ELSE date_trunc(p.period, e.ended_at, 'UTC') END,
               e.model, count(*), sum(e.tokens)
        FROM ended e CROSS JOIN unnest(CAST(:periods AS text[])) p (period)
        WHERE e.delivered
        GROUP BY 1, 2, 3
        ON CONFLICT (period, starts_at, model) DO UPDATE
            SET requests = model_statistics.requests + excluded.requests,
                tokens = model_statistics.tokens + excluded.tokens
    ), by_worker AS (
        INSERT INTO worker_totals (worker_id, fulfilled, uncompleted, tokens, rewards)
        SELECT e.worker_id, count(*) FILTER (WHERE e.delivered),
               count(*) FILTER (WHERE NOT e.delivered AND e.fault <> ALL(CAST(:innocent AS text[]))),
               COALESCE(sum(e.tokens) FILTER (WHERE e.delivered), 0),
               COALESCE(sum(e.reward) FILTER (WHERE e.delivered), 0)
        FROM ended e
        GROUP BY e.worker_id
        ON CONFLICT (worker_id) DO UPDATE
            SET fulfilled = worker_totals.fulfilled + excluded.fulfilled,
                uncompleted = worker_totals.uncompleted + excluded.uncompleted,
                tokens = worker_totals.tokens + excluded.tokens,
                rewards = worker_totals.rewards + excluded.rewards
    )
    SELECT until FROM moved
    """
)

_FORGET = text(
    f"""
    DELETE FROM model_statistics m
    USING (VALUES {", ".join(f"('{period}', interval '{kept}')" for period, kept in KEPT.items())}) k (period, kept)
    WHERE m.period = k.period AND m.starts_at < now() - k.kept
    """  # noqa: S608 - joined from constants
)

_TOTALS = text(
    f"""
    SELECT span, round(sum(requests * weight)) AS requests, round(sum(tokens * weight)) AS tokens
    FROM ({_spans(*SPANS)}) counted GROUP BY span
    """  # noqa: S608 - joined from constants
)

_MODELS = text(
    f"""
    SELECT span, model, round(sum(requests * weight)) AS requests
    FROM ({_spans(Period.DAY, Period.MONTH)}) counted GROUP BY span, model
    HAVING round(sum(requests * weight)) > 0
    ORDER BY span, requests DESC, model
    """  # noqa: S608 - joined from constants
)
