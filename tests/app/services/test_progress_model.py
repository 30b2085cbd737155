"""The script that takes posts, against a plain model of sequence, cap and repeats, over a real Valkey (details D6)."""

from dataclasses import dataclass, field
from itertools import pairwise
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from redis import Redis

from app.adapters.leases import LeaseStore, NewLease, Posted
from app.domain.progress import PostOutcome, ProgressPost, cap_bytes
from config.settings import Settings

CAP = 40
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_POSTS = st.lists(st.tuples(st.none() | st.integers(0, 6), _TEXTS, _TEXTS), max_size=25)


@dataclass
class Model:
    """A lease as the specification has it."""

    taken: list[tuple[str, str]] = field(default_factory=list)
    bytes: int = 0
    stopped: bool = False

    def post(self, seq: int | None, delta: str, reasoning: str) -> Posted:
        """What a post comes to."""
        size = len(delta.encode()) + len(reasoning.encode())
        if seq is None or seq < len(self.taken):
            return Posted(PostOutcome.ACCEPTED, len(self.taken))
        if self.stopped:
            return Posted(PostOutcome.FULL, len(self.taken))
        if seq > len(self.taken):
            return Posted(PostOutcome.OUT_OF_STEP, len(self.taken))
        if self.bytes + size > CAP:
            self.stopped = True
            return Posted(PostOutcome.FULL, len(self.taken))
        self.bytes += size
        self.taken.append((delta, reasoning))
        return Posted(PostOutcome.ACCEPTED, len(self.taken))


@pytest.fixture
def leases(settings: Settings, redis: Redis) -> LeaseStore:
    """A process's leases, in an empty Valkey."""
    return LeaseStore(settings)


def opened(leases: LeaseStore, generation_id: UUID, request_id: UUID) -> None:
    lease = NewLease(
        model="m",
        generation_id=generation_id,
        request_id=request_id,
        key_digest="digest",
        streamed=True,
        max_bytes=CAP,
        life_seconds=60,
    )
    assert leases.open(lease) is not None


@given(posts=_POSTS)
@hypothesis_settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_posts_in_any_order_come_to_what_the_model_says(
    leases: LeaseStore, posts: list[tuple[int | None, str, str]]
) -> None:
    generation_id, request_id, model = uuid4(), uuid4(), Model()
    opened(leases, generation_id, request_id)
    for seq, delta, reasoning in posts:
        post = ProgressPost(generation_id=generation_id, seq=seq, delta=delta, reasoning_delta=reasoning)
        assert leases.post("digest", post) == model.post(seq, delta, reasoning)
    frozen = leases.freeze(request_id, generation_id)
    assert frozen is not None
    assert frozen.is_complete
    assert frozen.text.content == "".join(delta for delta, _ in model.taken)
    assert frozen.text.reasoning == "".join(reasoning for _, reasoning in model.taken)


@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=CAP // 4), cuts=st.sets(st.integers(1, CAP // 4))
)
@hypothesis_settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_text_split_anywhere_reads_back_whole(leases: LeaseStore, text: str, cuts: set[int]) -> None:
    generation_id, request_id = uuid4(), uuid4()
    opened(leases, generation_id, request_id)
    bounds = [0, *sorted(cuts), len(text)]
    for seq, (begin, end) in enumerate(pairwise(bounds)):
        post = ProgressPost(generation_id=generation_id, seq=seq, delta=text[begin:end])
        assert leases.post("digest", post) == Posted(PostOutcome.ACCEPTED, seq + 1)
    frozen = leases.freeze(request_id, generation_id)
    assert frozen is not None
    assert frozen.text.content == text


@pytest.mark.parametrize(("max_length", "cap"), [(1, 65_536), (1024, 65_536), (1025, 65_600), (16_384, 1_048_576)])
def test_the_cap_is_64_bytes_a_token_and_at_least_64_kib(max_length: int, cap: int) -> None:
    assert cap_bytes(max_length) == cap


def test_many_tiny_posts_stop_too(leases: LeaseStore, redis: Redis) -> None:
    generation_id, request_id = uuid4(), uuid4()
    opened(leases, generation_id, request_id)
    redis.hset(f"horde:lease:{generation_id}", "seq", 4096)
    post = ProgressPost(generation_id=generation_id, seq=4096, delta="x")
    assert leases.post("digest", post) == Posted(PostOutcome.FULL, 4096)
