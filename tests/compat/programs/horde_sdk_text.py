"""horde-sdk as its users write it: an account, a worker, a text, a transfer, and every list that it models.

Every answer goes through the SDK's own models; one that does not fit ends the program. The last line
that is printed is a JSON object of what was found out.
"""

import json
import os
import re
import threading
import urllib.parse
import urllib.request
import uuid

from horde_sdk.ai_horde_api.ai_horde_clients import AIHordeAPIManualClient, AIHordeAPISimpleClient
from horde_sdk.ai_horde_api.apimodels import (
    AllWorkersDetailsRequest,
    FindUserRequest,
    HordePerformanceRequest,
    HordeStatusModelsAllRequest,
    KudosTransferRequest,
    ListUsersDetailsRequest,
    ModelGenerationInputKobold,
    NewsRequest,
    SingleWorkerDetailsRequest,
    TextGenerateAsyncRequest,
    TextGenerateJobPopRequest,
    TextGenerationJobSubmitRequest,
    TextStatsModelsRequest,
    TextStatsModelsTotalRequest,
)
from horde_sdk.ai_horde_api.consts import GENERATION_STATE, MODEL_TYPE, WORKER_TYPE
from horde_sdk.generic_api.apimodels import RequestErrorResponse

ROOT = os.environ["AI_HORDE_URL"].removesuffix("/api/")
MODEL = f"koboldcpp/Sdk-8B-{uuid.uuid4().hex[:8]}"
CLIENT = AIHordeAPIManualClient()


def register(name: str) -> str:
    """The key of a new account, from the page that people get."""
    form = urllib.parse.urlencode({"username": name}).encode()
    with urllib.request.urlopen(f"{ROOT}/register", form, timeout=30) as page:  # noqa: S310 - a URL of ours
        return re.search(r'id="key"[^>]*value="([A-Za-z0-9_-]{22})"', page.read().decode())[1]


def ask(request):
    """The SDK's model of an answer; a refusal ends the program."""
    answer = CLIENT.submit_request(request, request.get_default_success_response_type())
    if isinstance(answer, RequestErrorResponse):
        raise SystemExit(f"{type(request).__name__}: {answer}")
    return answer


def work(key: str, rewards: list[float], online: threading.Event, over: threading.Event) -> None:
    """Run a worker until it was paid once."""
    while not rewards and not over.is_set():
        job = ask(
            TextGenerateJobPopRequest(
                apikey=key,
                name=f"SDK box {MODEL[-8:]}",
                models=[MODEL],
                max_length=512,
                max_context_length=4096,
                bridge_agent="SDK worker:1:https://github.com/Haidra-Org/horde-sdk",
            )
        )
        online.set()
        if job.ids:
            submitted = TextGenerationJobSubmitRequest(
                apikey=key, id=job.ids[0], generation=f"{job.payload.prompt} a time.", state=GENERATION_STATE.ok
            )
            rewards.append(ask(submitted).reward)


def main() -> None:
    """Live through it."""
    rewards: list[float] = []
    online, over = threading.Event(), threading.Event()
    owner, requester = register("SdkOwner"), os.environ["HORDE_API_KEY"]
    worker = threading.Thread(target=work, args=(owner, rewards, online, over))
    worker.start()
    online.wait(60)
    try:
        status, _ = AIHordeAPISimpleClient().text_generate_request(
            TextGenerateAsyncRequest(
                apikey=requester,
                prompt="Once upon",
                models=[MODEL],
                params=ModelGenerationInputKobold(max_length=80, max_context_length=1024, n=1),
            ),
            timeout=90,
        )
    finally:
        over.set()
        worker.join(60)
    found = ask(FindUserRequest(apikey=owner))
    given = ask(KudosTransferRequest(apikey=requester, username=found.username, amount=25.0))
    workers = ask(AllWorkersDetailsRequest(type=WORKER_TYPE.text))
    own = next(each for each in workers.root if each.name.startswith("SDK box") and MODEL in each.models)
    single = ask(SingleWorkerDetailsRequest(worker_id=own.id_))
    models = ask(HordeStatusModelsAllRequest(type=MODEL_TYPE.text))
    performance = ask(HordePerformanceRequest())
    lists = (TextStatsModelsTotalRequest(), TextStatsModelsRequest(), NewsRequest(), ListUsersDetailsRequest(page=1))
    for request in lists:
        ask(request)
    version = AIHordeAPISimpleClient().heartbeat_request().version
    answer = {
        "text": status.generations[0].text,
        "done": status.done,
        "rewarded": rewards[0] > 0,
        "transferred": given.transferred,
        "worker": [single.name == own.name, MODEL in single.models],
        "model_listed": MODEL in {each.name for each in models.root},
        "workers_counted": performance.text_worker_count >= 1,
        "version": bool(version),
    }
    print(json.dumps(answer))


main()
