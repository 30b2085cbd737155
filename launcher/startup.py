"""Bringing a horde up, step by step, and taking it down again when a step fails."""

import shlex
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import FrameType

import orjson

from config.settings import LauncherSettings
from launcher.errors import LauncherError
from launcher.local_secrets import LocalSecrets
from launcher.options import UpOptions
from launcher.plan import BACKEND, PROCESSES, SERVICES, WORKER, Plan, home_of
from launcher.ports import check_free
from launcher.private_files import write_private_json
from launcher.probes import ask_chat, ask_ready
from launcher.program import Program
from launcher.progress import Progress
from launcher.services.service import Service
from launcher.stopping import stop_everything
from launcher.supervision import Supervisor, log_tail, write_configuration
from launcher.watching import Watch

SERVICE_SECONDS = 60
RELEASE_SECONDS = 300
READY_SECONDS = 120
MODEL_SECONDS = 300
CHAT_SECONDS = 180

AccountMaker = Callable[[Mapping[str, str], LocalSecrets], None]


class StopRequested(BaseException):
    """A signal asked the launcher to stop. `running` says whether the horde had come up."""

    def __init__(self, running: bool) -> None:
        super().__init__()
        self.running = running


class Startup:
    """One start of a horde."""

    def __init__(self, plan: Plan, create_accounts: AccountMaker, progress: Progress) -> None:
        self._plan = plan
        self._create_accounts = create_accounts
        self._progress = progress
        self._supervisor = Supervisor(plan.home)
        self._watch = Watch(plan.home, self._supervisor, progress)
        self._running = False
        self._stopping = False

    def run(self) -> None:
        """Bring the horde up; unless it is to be detached, stay with it until a signal comes.

        Raises LauncherError when something fails and StopRequested on a signal;
        nothing is left running then.
        """
        home, progress = self._plan.home, self._progress
        with self._stoppable():
            try:
                self._clear_stage()
                self._bring_up()
                self._running = True
                self._show()
                if self._plan.options.detach:
                    home.detached_mark.touch()
                    return
                self._watch.follow()
            except BaseException:
                # From here on no signal may cut the orderly stop short.
                self._stopping = True
                progress.say("stopping everything")
                stop_everything(home)
                progress.say("everything is stopped")
                raise

    def _clear_stage(self) -> None:
        """End what an earlier start left behind, and make sure that what this one needs is there.

        Raises LauncherError when it is not.
        """
        ended = stop_everything(self._plan.home)
        if ended:
            self._progress.say(f"ended {ended} processes that an earlier start had left behind")
        check_free(self._plan.wanted_ports())
        for attached in self._plan.attached:
            attached.check()

    def _bring_up(self) -> None:
        plan = self._plan
        for service in plan.services:
            service.prepare()
        groups = plan.groups()
        self._supervisor.start(write_configuration(plan.home, groups))
        for group in (SERVICES, BACKEND):
            if group in groups:
                self._supervisor.start_group(group)
        for service in plan.services:
            name = service.program().name
            self._watch.wait(name, name, SERVICE_SECONDS, partial(_reach, service))
        release = plan.release()
        if release is not None:
            self._run_release(release)
        self._create_accounts(plan.environment, plan.secrets)
        write_private_json(plan.home.endpoints, plan.endpoints())
        self._start_processes()

    def _start_processes(self) -> None:
        """Start the Procfile's processes and the worker, and wait until a completion works.

        The two doors have the machine to themselves at first, and the worker
        looks at its backend while the task processes come up.
        """
        plan, watch = self._plan, self._watch
        doors = {"web": plan.native_url, "front": plan.front_url}
        for process in filter(plan.has_process, doors):
            self._supervisor.start_program(PROCESSES, process)
        for process in filter(plan.has_process, doors):
            watch.wait(process, process, READY_SECONDS, partial(ask_ready, f"{doors[process]}/readyz"))
        self._supervisor.start_group(PROCESSES)
        if plan.local_backend:
            watch.wait("backend", "the model", MODEL_SECONDS, partial(ask_ready, f"{plan.backend_url}/health"))
        if plan.options.with_worker:
            self._supervisor.start_group(WORKER)
            chat = partial(ask_chat, plan.front_url, plan.secrets.demo_key, plan.options.served_as)
            watch.wait("worker", "a chat completion", CHAT_SECONDS, chat)
        for process in filter(plan.has_process, plan.ports.metrics):
            health = f"http://127.0.0.1:{plan.ports.metrics[process]}/readyz"
            watch.wait(process, process, READY_SECONDS, partial(ask_ready, health))
        watch.settle()

    def _run_release(self, release: Program) -> None:
        """Run the release line to its end.

        Raises LauncherError with its last lines when it fails.
        """
        log = self._plan.home.log_of(release.name)
        with log.open("wb") as output:
            try:
                result = subprocess.run(
                    ["/bin/sh", str(release.write_script(self._plan.home.programs))],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    timeout=RELEASE_SECONDS,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise LauncherError(f"{release.command} took over {RELEASE_SECONDS} s.\n{log_tail(log)}") from None
        if result.returncode != 0:
            raise LauncherError(f"{release.command} failed. The last lines of {log}:\n{log_tail(log)}")
        self._progress.say(f"{release.command} is done")

    def _show(self) -> None:
        plan = self._plan
        self._progress.say("the horde is up")
        print(f"\n  base URL   {plan.front_url}/v1\n  API key    {plan.secrets.demo_key}")
        print(f"  browser    {plan.front_url}/chat and {plan.front_url}/status")
        print(f"  all else   {plan.home.endpoints}\n")
        if plan.options.with_worker:
            print(f"{_curl(plan)}\n")
        else:
            print("No worker runs: attach one with the worker_key that stands there.\n")
        print("script/down stops it." if plan.options.detach else "Ctrl-C stops it.", flush=True)

    @contextmanager
    def _stoppable(self) -> Iterator[None]:
        """Let the usual signals end the start or the watch."""

        def stop(_number: int, _frame: FrameType | None) -> None:
            if not self._stopping:
                self._stopping = True
                raise StopRequested(self._running)

        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        before = {number: signal.signal(number, stop) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def up(settings: LauncherSettings, options: UpOptions, create_accounts: AccountMaker) -> None:
    """Bring a horde up (operations O1).

    Raises LauncherError, with nothing left running, when it cannot be, and
    StopRequested when a signal ended it.
    """
    home = home_of(settings)
    home.create()
    with home.locked():
        if home.detached_mark.exists() and Supervisor(home).pid() is not None:
            raise LauncherError(f"A horde already runs from {home.path}. script/down stops it.")
        Startup(Plan(settings, options, home), create_accounts, Progress()).run()


def _reach(service: Service) -> str | None:
    try:
        service.check()
    except OSError as error:
        return str(error)
    return None


def _curl(plan: Plan) -> str:
    """A line for a shell that asks the horde something."""
    body = {"model": plan.options.served_as, "messages": [{"role": "user", "content": "What is a horde?"}]}
    words = ["curl", f"{plan.front_url}/v1/chat/completions"]
    words += ["-H", f"Authorization: Bearer {plan.secrets.demo_key}"]
    words += ["-H", "Content-Type: application/json"]
    words += ["-d", orjson.dumps(body).decode()]
    return shlex.join(words)
