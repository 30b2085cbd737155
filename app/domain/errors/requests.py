"""Refusals that requesters meet."""

from app.domain.errors.root import HordeError


class MissingPrompt(HordeError):
    """A text request with an empty prompt."""

    status = 400
    rc = "MissingPrompt"


class TokenOverflow(HordeError):
    """A text request that wants a longer reply than its context holds."""

    status = 400
    rc = "TokenOverflow"


class TooManyStopSequences(HordeError):
    """More stop sequences than a text request may have."""

    status = 400
    rc = "TooManyStopSequences"


class ExcessiveStopSequence(HordeError):
    """Stop sequences of a text request that are too long together."""

    status = 400
    rc = "ExcessiveStopSequence"


class MissingFullSamplerOrder(HordeError):
    """A `sampler_order` that does not name seven samplers."""

    status = 400
    rc = "MissingFullSamplerOrder"


class RequestNotFound(HordeError):
    """No such request for this caller; also when it exists and belongs to somebody else."""

    status = 404
    rc = "RequestNotFound"


class FilterNotFound(HordeError):
    """No moderation filter has this id."""

    status = 404
    rc = "FilterNotFound"


class OperationKeyMismatch(HordeError):
    """The operation key was used before with another body."""

    status = 409
    rc = "OperationKeyMismatch"


class CorruptPrompt(HordeError):
    """A filter of the operator's refuses the text (native API N6)."""

    status = 400
    rc = "CorruptPrompt"


class TooManyPrompts(HordeError):
    """The account has as many requests waiting as it may have (wire reference 4.8)."""

    status = 429
    rc = "TooManyPrompts"


class NoFilterModSelected(HordeError):
    """The body changes nothing about the filter."""

    status = 400
    rc = "NoFilterModSelected"


class NoEligibleWorker(HordeError):
    """No online chat worker serves any listed model (details D1)."""

    status = 503
    rc = "no_eligible_worker"


class AddressBanned(HordeError):
    """The operator banned the network that the call came from."""

    status = 403
    rc = "AddressBanned"


class TimeoutIp(HordeError):
    """The address is kept out for a time, after prompts that were refused."""

    status = 403
    rc = "TimeoutIP"


class MaintenanceMode(HordeError):
    """The horde takes no requests for now."""

    status = 400
    rc = "MaintenanceMode"
