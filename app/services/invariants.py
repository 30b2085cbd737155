"""What must hold in the database at any moment, and what must hold once the horde is at rest.

`horde kudos check` runs it, and so does every fault test after its fault.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, text

from app.adapters.database import Transaction

ROWS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that does not hold, with a few of the rows that break it."""

    rule: str
    rows: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.rule}: {', '.join(self.rows)}"


ALWAYS = {
    "the entries of every movement sum to zero": """
        SELECT business_key FROM ledger_entries GROUP BY business_key HAVING sum(amount) <> 0""",
    "balances equal their folded entries, in every pocket": """
        SELECT COALESCE(b.user_id, e.user_id)::text
        FROM balances b
        FULL JOIN (SELECT user_id,
                       COALESCE(sum(amount) FILTER (WHERE pocket = 'spendable'), 0) AS amount,
                       COALESCE(sum(amount) FILTER (WHERE pocket = 'escrow'), 0) AS escrow,
                       COALESCE(sum(amount) FILTER (WHERE pocket = 'held'), 0) AS held
                   FROM ledger_entries WHERE folded GROUP BY user_id) e
            ON e.user_id = b.user_id
        WHERE (COALESCE(b.amount, 0), COALESCE(b.escrow, 0), COALESCE(b.held, 0))
            <> (COALESCE(e.amount, 0), COALESCE(e.escrow, 0), COALESCE(e.held, 0))""",
    "totals equal their folded entries": """
        SELECT COALESCE(t.user_id, e.user_id) || ' ' || COALESCE(t.kind, e.kind)
        FROM kudos_totals t
        FULL JOIN (SELECT user_id, kind, sum(amount) AS amount, count(*) AS entries, sum(tokens) AS tokens
                   FROM ledger_entries WHERE folded GROUP BY user_id, kind) e
            ON e.user_id = t.user_id AND e.kind = t.kind
        WHERE (t.amount, t.entries, t.tokens) IS DISTINCT FROM (e.amount, e.entries, e.tokens)""",
    "what was spent with a key equals its folded entries": """
        SELECT COALESCE(s.key_id, e.key_id)::text
        FROM key_spending s
        FULL JOIN (SELECT key_id, -sum(amount) AS amount FROM ledger_entries
                   WHERE folded AND key_id IS NOT NULL GROUP BY key_id) e ON e.key_id = s.key_id
        WHERE COALESCE(s.amount, 0) <> COALESCE(e.amount, 0)""",
    "what an account holds is the holds of its open requests": """
        SELECT COALESCE(r.user_id, e.user_id)::text
        FROM (SELECT user_id, sum(hold) AS hold FROM horde_requests WHERE ended_at IS NULL GROUP BY user_id) r
        FULL JOIN (SELECT user_id, sum(amount) AS held FROM ledger_entries WHERE pocket = 'held' GROUP BY user_id) e
            ON e.user_id = r.user_id
        WHERE COALESCE(r.hold, 0) <> COALESCE(e.held, 0)""",
    "no escrow is below zero": """
        SELECT user_id::text FROM ledger_entries WHERE pocket = 'escrow' GROUP BY user_id HAVING sum(amount) < 0""",
    "a transfer moves its own amount, once": """
        SELECT t.id::text FROM kudos_transfers t
        LEFT JOIN ledger_entries e ON e.business_key = 'transfer:' || t.id
        GROUP BY t.id
        HAVING count(e.id) <> 2
            OR count(*) FILTER (WHERE e.user_id = t.source_id AND e.amount = -t.amount) <> 1
            OR count(*) FILTER (WHERE e.user_id = t.target_id AND e.amount = t.amount) <> 1""",
    "a settled generation has one charge, one reward and one fee, of its own amounts": """
        SELECT g.id::text FROM generations g
        LEFT JOIN ledger_entries e ON e.business_key = 'generation:' || g.id
        WHERE g.state = 'settled'
        GROUP BY g.id
        HAVING count(*) FILTER (WHERE e.kind = 'charge' AND e.amount = -g.charge) <> 1
            OR count(*) FILTER (WHERE e.kind = 'reward') <> 1
            OR sum(e.amount) FILTER (WHERE e.kind IN ('reward', 'reward_escrow')) <> g.reward
            OR count(*) FILTER (WHERE e.kind = 'fee' AND e.amount = g.charge - g.reward) <> 1""",
    "a generation that was faulted and paid was paid by the horde and charged to nobody": """
        SELECT g.id::text FROM generations g
        LEFT JOIN ledger_entries e ON e.business_key = 'compensation:' || g.id AND e.kind = 'compensation'
        WHERE g.state = 'faulted' AND g.reward IS NOT NULL
          AND (g.charge <> 0 OR COALESCE(e.amount, 0) <> g.reward)""",
    "only a settled generation is in the ledger": """
        SELECT g.id::text FROM generations g
        JOIN ledger_entries e ON e.business_key = 'generation:' || g.id
        WHERE g.state <> 'settled'""",
    "a slot has at most one accepted generation": """
        SELECT request_id::text || ' ' || slot FROM generations WHERE state IN ('verified', 'settled')
        GROUP BY request_id, slot HAVING count(*) > 1""",
    "a request counts its accepted generations": """
        SELECT r.id::text FROM horde_requests r WHERE r.finished <> (
            SELECT count(*) FROM generations g WHERE g.request_id = r.id AND g.state IN ('verified', 'settled'))""",
    "a request is done exactly when every slot was delivered": """
        SELECT id::text FROM horde_requests
        WHERE (state = 'done') <> (finished = n) AND NOT (state = 'cancelled' AND finished = n)""",
    "a submitted or accepted generation has its reply until bodies are erased": """
        SELECT g.id::text FROM generations g JOIN horde_requests r ON r.id = g.request_id
        LEFT JOIN replies y ON y.generation_id = g.id
        WHERE g.state IN ('submitted', 'verified', 'settled') AND r.bodies_erased_at IS NULL
          AND y.generation_id IS NULL""",
    "the queue holds exactly the queued requests": """
        SELECT COALESCE(r.id, q.request_id)::text
        FROM (SELECT id FROM horde_requests WHERE state = 'queued') r
        FULL JOIN queue_entries q ON q.request_id = r.id
        WHERE r.id IS NULL OR q.request_id IS NULL""",
    "a request counts its queued slots": """
        SELECT r.id::text FROM horde_requests r WHERE r.state <> 'preparing' AND r.waiting <> (
            SELECT count(*) FROM queue_entries q WHERE q.request_id = r.id)""",
    "no slot is at two workers at once": """
        SELECT request_id::text || ' ' || slot FROM generations WHERE state = 'leased'
        GROUP BY request_id, slot HAVING count(*) > 1""",
    "a processing request has a generation under way": """
        SELECT r.id::text FROM horde_requests r WHERE r.state = 'processing' AND NOT EXISTS (
            SELECT 1 FROM generations g WHERE g.request_id = r.id AND g.state IN ('leased', 'submitted'))""",
    "a terminal request has an end": """
        SELECT id::text FROM horde_requests
        WHERE (state IN ('done', 'faulted', 'cancelled', 'expired')) <> (ended_at IS NOT NULL)""",
    "an operation key names a request of its own account": """
        SELECT k.key FROM operation_keys k JOIN horde_requests r ON r.id = k.request_id
        WHERE r.user_id <> k.user_id""",
}
"""Rules that hold after every commit: each query returns the rows that break it."""

AT_REST = {
    "no generation is stuck before its settlement": """
        SELECT id::text || ' ' || state FROM generations WHERE state IN ('submitted', 'verified')""",
    "no request is open past its life": """
        SELECT id::text || ' ' || state FROM horde_requests
        WHERE state IN ('preparing', 'queued', 'processing') AND expires_at < now() - interval '60 seconds'""",
}
"""Rules that hold too once the rescue period has passed without new work."""


def check(transaction: Transaction | Connection, *, at_rest: bool = False) -> list[Violation]:
    """Return every rule that does not hold; `at_rest` adds those that need the horde to be idle."""
    rules = ALWAYS | AT_REST if at_rest else ALWAYS
    violations = []
    for rule, query in rules.items():
        rows = transaction.execute(text(query)).scalars().fetchmany(ROWS_SHOWN)
        if rows:
            violations.append(Violation(rule, tuple(str(row) for row in rows)))
    return violations
