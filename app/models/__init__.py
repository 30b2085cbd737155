"""The tables. Shapes only: rules live in `app.domain`, moves in `app.services`."""

from app.models.account import ApiKey, Balance, KeySpending, User
from app.models.ban import Ban
from app.models.base import Base
from app.models.filter import Filter
from app.models.generation import Generation, Reply
from app.models.incident import Incident
from app.models.known_model import KnownModel
from app.models.ledger import KudosTotal, KudosTransfer, LedgerEntry
from app.models.media import RequestMedia
from app.models.mode import ModeFlag
from app.models.operation_key import OperationKey
from app.models.outage import Heartbeat, Outage
from app.models.report import Report
from app.models.request import HordeRequest, QueueEntry, RequestBody, RequirementClass
from app.models.statistics import ModelStatistic, WorkerTotal
from app.models.suspicion import Suspicion
from app.models.worker import Worker, WorkerMessage, WorkerSpeed

__all__ = [
    "ApiKey",
    "Balance",
    "Ban",
    "Base",
    "Filter",
    "Generation",
    "Heartbeat",
    "HordeRequest",
    "Incident",
    "KeySpending",
    "KnownModel",
    "KudosTotal",
    "KudosTransfer",
    "LedgerEntry",
    "ModeFlag",
    "ModelStatistic",
    "OperationKey",
    "Outage",
    "QueueEntry",
    "Reply",
    "Report",
    "RequestBody",
    "RequestMedia",
    "RequirementClass",
    "Suspicion",
    "User",
    "Worker",
    "WorkerMessage",
    "WorkerSpeed",
    "WorkerTotal",
]
