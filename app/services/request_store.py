"""The one statement that stores a request: its operation key, row, bodies, hold and place in the queue, or nothing.

It always answers with one row: the account's standing, and the id of what it stored. No id
means that the standing did not admit the request, or that its operation key was taken.
"""

from sqlalchemy import text

from app.services.admission import ADMITTED, ANONYMOUS_STANDING, HOLD, STANDING

_STATEMENT = """
    WITH standing AS MATERIALIZED ({standing}
    ), admitted AS (
        SELECT 1 FROM standing WHERE {admitted}
    ), claimed AS (
        INSERT INTO operation_keys (user_id, scope, key, fingerprint, request_id)
        SELECT :user_id, :scope, CAST(:key AS text), CAST(:fingerprint AS text), :id
        FROM admitted WHERE CAST(:key AS text) IS NOT NULL
        ON CONFLICT DO NOTHING
        RETURNING request_id
    ), wanted AS (
        SELECT request_id AS id FROM claimed
        UNION ALL
        SELECT CAST(:id AS uuid) FROM admitted WHERE CAST(:key AS text) IS NULL
    ), made AS (
        INSERT INTO horde_requests (id, user_id, key_id, is_chat, state, class_id, requirements, max_length,
            max_context_length, context_tokens, job_ttl_seconds, conformance, quote, hold, sort_key, expires_at)
        SELECT id, :user_id, CAST(:metered_key AS bigint), true, 'queued', :class_id, :requirements, :max_length,
            :max_context_length, :context_tokens, :job_ttl_seconds, :conformance, :quote, CAST(:hold AS bigint),
            extract(epoch FROM now()) * CAST(:ageing AS float8) - CAST(:priority AS float8),
            now() + make_interval(secs => :ttl)
        FROM wanted
        RETURNING id, class_id, sort_key, max_length, max_context_length
    ), bodies AS (
        INSERT INTO request_bodies (request_id, contract, prompt, submitted_prompt)
        SELECT id, :contract, :prompt, :submitted_prompt FROM made
    ), held AS ({hold}
    ), entered AS (
        INSERT INTO queue_entries (request_id, class_id, sort_key, max_length, max_context_length,
            images, tools, tools_temperature)
        SELECT id, class_id, sort_key, max_length, max_context_length, :images, :tools, :tools_temperature FROM made
        RETURNING request_id
    )
    SELECT standing.*, (SELECT request_id FROM entered) AS request_id FROM standing
"""

STORE = text(_STATEMENT.format(standing=STANDING, admitted=ADMITTED, hold=HOLD))
STORE_ANONYMOUS = text(_STATEMENT.format(standing=ANONYMOUS_STANDING, admitted=ADMITTED, hold=HOLD))
