"""Money under any interleaving: submits, replies, refusals, cancels, repeats, crashes between two statements.

A machine of Hypothesis drives the use cases over a real database. Before any statement it may
let the process die: what was committed stays, what was not is gone, and whatever was to be
announced is not. Then everything is tried again, as the sweep and Celery would.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import Executable

from app.domain.errors import HordeError
from app.domain.system_accounts import ANONYMOUS_KEY
from app.services.escrow import review_escrow
from app.services.kudos import fold_balances, grant
from app.services.settle import settle_batch
from app.services.sweep import sweep
from app.services.transfers import TransferKudos
from app.services.uptime import reward_uptime
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World
from tests.app.services.test_replies import FORCED, FOREIGN_CALL
from tests.support.statements import around_statements

REPLIES: list[Mapping[str, object]] = [
    {"message": {"content": "Hello there, friend."}, "finish_reason": "stop"},
    {"message": {"content": "x" * 3000}, "finish_reason": "stop"},
    FOREIGN_CALL,
]
WHICH = st.integers(0, 5)
DIES_AFTER = st.one_of(st.none(), st.none(), st.integers(0, 3))


class Crash(BaseException):
    """The process died here. No handler of ours may catch it."""


class Mortal:
    """Lets a process die before its n-th statement."""

    def __init__(self) -> None:
        self._left: int | None = None
        self.deaths = 0

    @contextmanager
    def statement(self, _: Executable) -> Iterator[None]:
        """Die before a statement, if it is its turn."""
        if self._left == 0:
            self._left = None
            self.deaths += 1
            raise Crash
        if self._left is not None:
            self._left -= 1
        yield

    def run(self, dies_after: int | None, step: Callable[[], Any]) -> Any:
        """Run a step in a process that dies so; None when it died or was refused."""
        self._left = dies_after
        try:
            return step()
        except (Crash, HordeError):
            return None
        finally:
            self._left = None


class Money(RuleBasedStateMachine):
    """Requesters, a worker, tasks and an operator, in any order."""

    def __init__(self, world: World, mortal: Mortal) -> None:
        super().__init__()
        self.world, self.mortal = world, mortal
        low = world.runtime.settings.model_copy(update={"kudos_trust_threshold": 0.001})
        self.runtime = replace(world.runtime, settings=low)
        self.requests: list[tuple[UUID, str]] = []
        self.jobs: list[UUID] = []
        self.transfers: list[tuple[str, str, float]] = []
        self.keys = [world.requester_key, ANONYMOUS_KEY, world.owner_key]

    @initialize()
    def begins(self) -> None:
        """Begin with the common movements made once, so that no example is about an empty ledger."""
        self.world.execute("UPDATE kudos_transfers SET created_at = now() - interval '1 hour'")
        self.world.execute("UPDATE users SET created_at = now() - interval '8 days', trusted = false WHERE id >= 100")
        with self.world.runtime.database.transaction() as transaction:
            grant(transaction, self.world.requester_id, 100_000)
        self.is_served(0, True, REPLIES[0], None, False)
        self.is_served(0, False, FOREIGN_CALL, None, False)
        self.transfers_kudos(0.01, False, False, None)

    @rule(who=WHICH, key=st.one_of(st.none(), WHICH), long=st.booleans(), forced=st.booleans(), dies=DIES_AFTER)
    def submits(self, who: int, key: int | None, long: bool, forced: bool, dies: int | None) -> None:
        api_key = self.keys[who % len(self.keys)]
        self.world.requester_key = api_key
        changes: dict[str, Any] = {"max_tokens": 1024 if long else 64} | (FORCED if forced else {})
        operation_key = None if key is None else f"an-operation-key-number-{id(self)}-{key}"
        accepted = self.mortal.run(dies, lambda: self.world.ask(operation_key, **changes))
        if accepted is not None:
            self.requests.append((accepted.id, api_key))

    @rule(dies=DIES_AFTER)
    def pops(self, dies: int | None) -> None:
        job = self.mortal.run(dies, self.world.pop)
        if job is not None and job.id is not None:
            self.jobs.append(job.id)

    @rule(which=WHICH, reply=st.sampled_from(REPLIES), dies=DIES_AFTER)
    def delivers(self, which: int, reply: Mapping[str, object], dies: int | None) -> None:
        if self.jobs:
            job = self.jobs[which % len(self.jobs)]
            self.mortal.run(dies, lambda: self.world.deliver(job, reply))

    @rule(which=WHICH, dies=DIES_AFTER)
    def faults(self, which: int, dies: int | None) -> None:
        if self.jobs:
            job = self.jobs[which % len(self.jobs)]
            self.mortal.run(dies, lambda: self.world.replies.fault(self.world.owner_key, job, "backend_error"))

    @rule(which=WHICH, dies=DIES_AFTER)
    def verifies(self, which: int, dies: int | None) -> None:
        if self.jobs:
            job = self.jobs[which % len(self.jobs)]
            self.mortal.run(dies, lambda: verify_generation(self.world.runtime, job))

    @rule(which=WHICH, dies=DIES_AFTER)
    def cancels(self, which: int, dies: int | None) -> None:
        if self.requests:
            request_id, key = self.requests[which % len(self.requests)]
            self.mortal.run(dies, lambda: self.world.cancel(request_id, api_key=key, trusted_front=False))

    @rule(who=WHICH, long=st.booleans(), reply=st.sampled_from(REPLIES), dies=DIES_AFTER, twice=st.booleans())
    def is_served(self, who: int, long: bool, reply: Mapping[str, object], dies: int | None, twice: bool) -> None:
        self.submits(who, None, long, reply is REPLIES[-1], None)
        self.pops(None)
        if self.jobs:
            job = self.jobs[-1]
            for death in (dies, None) if twice else (dies,):
                self.mortal.run(death, lambda: self.world.deliver(job, reply))
                self.mortal.run(death, lambda: verify_generation(self.world.runtime, job))
                self.mortal.run(death, lambda: settle_batch(self.world.runtime))

    @rule(which=WHICH)
    def grows_late(self, which: int) -> None:
        if self.jobs:
            self.world.execute(
                "UPDATE generations SET deadline_at = now() - interval '1 second' WHERE id = :id",
                id=self.jobs[which % len(self.jobs)],
            )

    @rule(which=WHICH)
    def outlives_its_request(self, which: int) -> None:
        if self.requests:
            self.world.execute(
                "UPDATE horde_requests SET expires_at = now() - interval '1 second' WHERE id = :id",
                id=self.requests[which % len(self.requests)][0],
            )

    @rule(task=st.sampled_from([settle_batch, fold_balances, sweep, review_escrow, reward_uptime]), dies=DIES_AFTER)
    def works(self, task: Callable[[Any], Any], dies: int | None) -> None:
        self.mortal.run(dies, lambda: task(self.runtime))

    @rule(amount=st.sampled_from([0.01, 5.0, 900.0]), back=st.booleans(), again=st.booleans(), dies=DIES_AFTER)
    def transfers_kudos(self, amount: float, back: bool, again: bool, dies: int | None) -> None:
        world = self.world
        ways = [(self.keys[0], f"bob#{world.owner_id}"), (world.owner_key, f"ann#{world.requester_id}")]
        key, target = ways[back]
        once = f"{id(self)}-{len(self.transfers)}"
        if again and self.transfers:
            key, target, amount = self.transfers[-1]
            once = f"{id(self)}-{len(self.transfers) - 1}"
        else:
            self.transfers.append((key, target, amount))
        self.mortal.run(dies, lambda: TransferKudos(world.runtime)(key, target, amount, once))

    @rule()
    def worker_stays(self) -> None:
        self.world.execute("UPDATE workers SET uptime_from = now() - interval '11 minutes'")

    @invariant()
    def every_rule_holds(self) -> None:
        self.world.require_sound()

    def teardown(self) -> None:
        """Let everything come to rest as a running horde would, and look whether it did."""
        self.world.execute("UPDATE generations SET next_dispatch_at = now() WHERE state = 'submitted'")
        for job in self.jobs:
            verify_generation(self.world.runtime, job)
        self.world.execute("UPDATE generations SET deadline_at = now() WHERE state = 'leased'")
        self.world.execute("UPDATE horde_requests SET expires_at = now() WHERE ended_at IS NULL")
        for task in (sweep, sweep, settle_batch, fold_balances, review_escrow, fold_balances, fold_balances):
            task(self.runtime)
        self.world.require_sound(at_rest=True)
        self.require_paid_once()
        self.world.requester_key = self.keys[0]

    def require_paid_once(self) -> None:
        """Every accepted generation was charged and rewarded once; no other was."""
        rows = self.world.execute(
            """
            SELECT g.state IN ('verified', 'settled'), count(*) FILTER (WHERE e.kind = 'charge'),
                   count(*) FILTER (WHERE e.kind = 'reward')
            FROM generations g LEFT JOIN ledger_entries e ON e.business_key = 'generation:' || g.id
            GROUP BY g.id, g.state
            """
        )
        assert {(accepted, charges, rewards) for accepted, charges, rewards in rows} <= {(True, 1, 1), (False, 0, 0)}
        assert self.world.execute("SELECT sum(held) FROM balances") in ([(0,)], [(None,)])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_books_balance_whatever_happens_in_whatever_order(world: World) -> None:
    """Run the machine, and require that it got to the common movements and died on the way."""
    mortal = Mortal()

    class Here(Money):
        def __init__(self) -> None:
            super().__init__(world, mortal)

    with around_statements(mortal.statement):
        run_state_machine_as_test(
            Here,
            settings=settings(
                max_examples=25,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    kinds = {kind for (kind,) in world.execute("SELECT DISTINCT kind FROM ledger_entries")}
    assert kinds >= {"charge", "reward", "reward_escrow", "fee", "hold", "release", "gift", "receipt"}
    assert {"settled", "refused"} <= {state for (state,) in world.execute("SELECT DISTINCT state FROM generations")}
    assert mortal.deaths > 5
