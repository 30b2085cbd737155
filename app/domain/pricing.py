"""What a generation costs its requester and earns its worker (native API N5, details D8).

Amounts are whole millikudos. One formula serves quote, charge and reward, for chat and
text alike; its constants are those of the wire reference, sections 4.1 to 4.4.
"""

from dataclasses import dataclass
from math import log2
from math import pow as power_of

CHARACTERS_PER_TOKEN = 4
"""Characters of a reply that count as one token."""

MIN_TOKENS = 20
"""Tokens that even an empty reply counts for, unless `max_length` is smaller."""

KUDOS = 1000
"""Millikudos in one kudos."""

GENERATION_FEE = KUDOS
"""Charged for each accepted generation beside its reward."""

REQUEST_TAX = KUDOS
"""Charged once a request, with its first settled generation."""

_DIVISOR = 125
_CONTEXT_FLOOR, _CONTEXT_BASE, _CONTEXT_UNIT = 1.2, 2.2, 1024
_MIN_CONTEXT_MULTIPLIER, _MAX_CONTEXT_MULTIPLIER = 0.1, 30.0
_BONUS_BILLIONS, _BONUS_EXPONENT = 13.0, 0.20
_CENT = KUDOS // 100


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the price of a request depends on, beside the length of its reply."""

    max_length: int
    context_tokens: int
    max_context_length: int
    billions: float


@dataclass(frozen=True, slots=True)
class Amounts:
    """What a reply counts for and is worth; the charge is without the request's tax."""

    tokens: int
    charge: int
    reward: int


NOTHING = Amounts(tokens=0, charge=0, reward=0)
"""What a generation is worth that delivered nothing."""


def output_tokens(characters: int, max_length: int) -> int:
    """Tokens of a reply by its characters: at least 20, at most `max_length`."""
    return min(max(MIN_TOKENS, -(-characters // CHARACTERS_PER_TOKEN)), max_length)


def context_multiplier(context_tokens: int) -> float:
    """Factor for the length of the context: 2.2 at 1 024 tokens, 30 from about 20 000 on."""
    multiplier = _CONTEXT_FLOOR + power_of(_CONTEXT_BASE, log2(max(context_tokens, 1) / _CONTEXT_UNIT))
    return min(max(multiplier, _MIN_CONTEXT_MULTIPLIER), _MAX_CONTEXT_MULTIPLIER)


def model_multiplier(billions: float) -> float:
    """Factor for the model: its size in billions of parameters, with a bonus above 13."""
    return billions * power_of(max(billions, _BONUS_BILLIONS) / _BONUS_BILLIONS, _BONUS_EXPONENT)


def reward(tokens: int, context_tokens: int, billions: float) -> int:
    """What the worker earns for one accepted generation, to the hundredth of a kudos."""
    kudos_earned = tokens * model_multiplier(billions) / _DIVISOR * context_multiplier(context_tokens)
    return round(kudos_earned * 100) * _CENT


def charge(reward: int) -> int:
    """What the requester pays for one accepted generation, without the request's tax."""
    return reward + GENERATION_FEE


def reply_amounts(characters: int, sizes: Sizes) -> Amounts:
    """What an accepted reply of this many characters costs and earns.

    The first accepted generation of a request bears the request's tax beside it (details D8).
    """
    tokens = output_tokens(characters, sizes.max_length)
    earned = reward(tokens, min(sizes.context_tokens, sizes.max_context_length), sizes.billions)
    return Amounts(tokens=tokens, charge=charge(earned), reward=earned)


def cancelled_amounts(posted_characters: int, sizes: Sizes) -> Amounts:
    """What a streamed generation is worth that its client cancelled: what was posted, else nothing (details D7)."""
    return reply_amounts(posted_characters, sizes) if posted_characters else NOTHING


def quote(max_length: int, max_context_length: int, billions: float) -> int:
    """The most that a request can cost: a reply of full length, its fee and the request's tax."""
    return charge(reward(max_length, max_context_length, billions)) + REQUEST_TAX


def text_quote(max_length: int, max_context_length: int, billions: float, n: int) -> int:
    """The most that a text request for `n` generations can cost; its tax is paid once."""
    return n * charge(reward(max_length, max_context_length, billions)) + REQUEST_TAX


def kudos(millikudos: int) -> float:
    """Kudos as shown on the wire, with at most two decimals."""
    return round(millikudos / KUDOS, 2)
