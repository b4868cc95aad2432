"""Jobs between languages: `leaseq/jobs` of TypeScript and `leaseq.jobs` enqueue, run and read each other's jobs, chains and schedules."""

from __future__ import annotations

import json
import math
import subprocess
import threading
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Any, Final

import pytest
from support import adapters
from support.job_app import TIMEOUT_SECS, JobAppFlavour, until

from leaseq import Item
from leaseq.jobs import App, Backoff, Context, JobCancelled, JobFailed
from leaseq.jobs.cron.trigger import CronTrigger, zone

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.typescript

PEER: Final = adapters.ROOT / "typescript" / "dist" / "test" / "job-peer.js"
LEASE_MS: Final = 600_000


class PeerError(Exception):
    """An error that the program in TypeScript threw, by its fields."""

    def __init__(self, reply: dict[str, Any]) -> None:
        super().__init__(reply)
        self.reply = reply


class Peer:
    """The program `job-peer.js`."""

    def __init__(self, url: str, form: str) -> None:
        self._process = subprocess.Popen(
            [adapters.NODE, "node", str(PEER), url, form],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, do: str, **request: Any) -> Any:
        """Return the reply to one request. Raises PeerError."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self._process.stdin.flush()
        reply = json.loads(self._process.stdout.readline())
        if "error" in reply:
            raise PeerError(reply)
        return reply["value"]

    def enqueue(self, function: str, *args: Any, options: dict[str, Any] | None = None, **kwargs: Any) -> str:
        """Enqueue a call and return its id."""
        call = {"function": function, "args": args, "kwargs": kwargs, "options": options or {}}
        found: str = self("enqueue", call=call)
        return found

    def result(self) -> Any:
        """Return the result of the job or the chain that was enqueued last. Raises PeerError."""
        return self("result", timeout=TIMEOUT_SECS * 1000)

    def work(self, *queues: str, duration: int = LEASE_MS) -> str:
        """Start a worker and return its id."""
        found: str = self("work", queues=queues, duration=duration)
        return found

    def close(self) -> None:
        """End it as a program ends whose input does."""
        with self._process:
            pass
        assert self._process.returncode == 0


@pytest.fixture
def flavour(url: str) -> Iterator[JobAppFlavour]:
    with JobAppFlavour(App(url), asynchronous=False) as made:
        yield made


@pytest.fixture
def peer(url: str) -> Iterator[Peer]:
    found = Peer(url, "json")
    yield found
    found.close()


@pytest.fixture
def packed_peer(url: str) -> Iterator[Peer]:
    found = Peer(url, "msgpack")
    yield found
    found.close()


def in_node(flavour: JobAppFlavour, name: str, **options: Any) -> Any:
    return flavour.app.function(name).with_options(queue="node", **options)


def test_python_runs_what_typescript_enqueues(flavour: JobAppFlavour, peer: Peer) -> None:
    seen: list[Any] = []

    @flavour.app.job(name="py.place")
    def place(ctx: Context, number: int, *, names: list[str]) -> dict[str, Any]:
        seen.append((number, names, ctx.headers, ctx.attempt, flavour.app.handle(ctx.id, queue="default")))
        return {"names": names, "none": None, "half": 0.5}

    @flavour.app.job(name="py.fail", retry_on=())
    def fail(why: str) -> None:
        raise ValueError(why)

    with flavour.working():
        options = {"headers": {"from": "node"}, "retries": 3, "attempt": 2, "timeLimit": 60_000}
        job_id = peer.enqueue("py.place", 7, names=["ü", "𝄞"], options=options)
        assert peer.result() == {"names": ["ü", "𝄞"], "none": None, "half": 0.5}
        number, names, headers, attempt, handle = seen[0]
        assert (number, names, headers, attempt) == (7, ["ü", "𝄞"], {"from": "node"}, 2)
        info = handle.info()
        assert (info.status, info.function, info.args, info.timeout) == ("succeeded", "py.place", (7,), 60)
        of_peer = peer("info", id=job_id, queue="default")
        assert (of_peer["status"], of_peer["worker"], of_peer["attempt"]) == ("succeeded", info.worker, 2)
        assert of_peer["started"] == round(info.started * 1000)
        peer.enqueue("py.fail", "no such order")
        with pytest.raises(PeerError) as failed:
            peer.result()
        reply = failed.value.reply
        assert (reply["error"], reply["type"], reply["reason"]) == (
            "JobFailed",
            "ValueError",
            "no such order",
        )
        assert "in fail" in reply["traceback"]
        peer.enqueue("py.fail")
        with pytest.raises(PeerError, match="missing a required argument: 'why'"):
            peer.result()


def test_typescript_runs_what_python_enqueues(flavour: JobAppFlavour, peer: Peer) -> None:
    """Each kind of arguments and of end."""
    worker = peer.work("node")
    echo, number = in_node(flavour, "node.echo"), in_node(flavour, "node.number")
    value = {"text": "ü𝄞", "list": [1, 0.5, True, None], "empty": {}}
    assert echo.enqueue(value).result(TIMEOUT_SECS) == value
    assert echo.enqueue().result(TIMEOUT_SECS) is None
    with pytest.raises(JobFailed, match="takes one argument"):
        echo.enqueue(1, "two").result(TIMEOUT_SECS)
    assert echo.enqueue(text="a").result(TIMEOUT_SECS) == {"text": "a"}
    pair = in_node(flavour, "node.pair")
    expected = {"first": "a", "separator": "-"}
    assert pair.enqueue("a", "-").result(TIMEOUT_SECS) == expected
    assert pair.enqueue("a", separator="-").result(TIMEOUT_SECS) == expected
    with pytest.raises(JobFailed, match="pair needs first"):
        pair.enqueue(separator="-").result(TIMEOUT_SECS)
    assert number.enqueue("7").result(TIMEOUT_SECS) == 7

    failing = number.with_options(retries=1).enqueue("seven")
    with pytest.raises(JobFailed, match="RangeError: seven is no number") as failed:
        failing.result(TIMEOUT_SECS)
    assert (failed.value.type, failed.value.attempt) == ("RangeError", 2)
    assert "job-peer.js" in failed.value.traceback
    info = failing.info()
    assert (info.status, info.worker) == ("failed", worker)
    with pytest.raises(JobFailed, match="DeadLetter: not again") as dead:
        in_node(flavour, "node.never").enqueue("not again").result(TIMEOUT_SECS)
    assert dead.value.attempt == 1
    with pytest.raises(JobFailed, match=r"SerializationError: .* Infinity") as unwritten:
        number.enqueue("Infinity").result(TIMEOUT_SECS)
    assert unwritten.value.attempt == 1  # LQ-JOB-61
    with pytest.raises(JobFailed, match=r"9007199254740993: send it as text"):
        echo.enqueue(2**53 + 1).result(TIMEOUT_SECS)  # JavaScript would round it
    with pytest.raises(JobFailed, match="JobTimeout: the function ran longer than 50 ms"):
        in_node(flavour, "node.wait", timeout=0.05, retries=0).enqueue().result(TIMEOUT_SECS)

    waiting = number.with_options(backoff=Backoff(3600, 7200)).enqueue("seven")
    until(lambda: waiting.status() == "retrying")
    queue = flavour.app.queue("node")
    assert queue.inspect(waiting.id).time - queue.stats().now > 1800 - 600
    assert waiting.info().error == "RangeError: seven is no number"

    given = in_node(flavour, "node.attempt", attempt=2, headers={"from": "python"}, delay=0.05)
    assert given.enqueue().result(TIMEOUT_SECS) == {"attempt": 2, "late": 50, "headers": {"from": "python"}}
    unkept = number.with_options(keep=None).enqueue("7")
    until(lambda: unkept.status() == "unknown")
    unknown = in_node(flavour, "node.none").enqueue()
    until(lambda: "this App has no function" in unknown.info().error)
    assert (unknown.status(), unknown.info().attempt) == ("delayed", 0)  # LQ-JOB-42
    queue.add_item(Item(b"{rubbish", id="rubbish"), max_attempts=5, keep=60)
    with pytest.raises(JobFailed, match="BadEnvelopeError: it cannot be read") as refused:
        flavour.app.handle("rubbish", queue="node").result(TIMEOUT_SECS)
    assert refused.value.attempt == 1


VALUES: Final = [
    [10, 20.5],
    {"place": "Zürich", "\u20ac": -0.0, "\U0001f600": None},
    [1e-7, 0.1, 123456.789, 2**53 - 1],
    'a "\\" \n\u0001 \u2028',
]
"""Arguments whose JSON has to be the same in each language, so that ids made of them are."""


@pytest.mark.parametrize("option", ["unique", "throttle"])
def test_a_job_that_one_enqueued_is_not_enqueued_by_the_other(
    flavour: JobAppFlavour, peer: Peer, option: str
) -> None:
    length = 365 * 86400
    ours: Any = {option: True if option == "unique" else length}
    theirs = {option: True if option == "unique" else length * 1000}
    function: Any = flavour.app.function("shop.total").with_options(**ours)
    for number, value in enumerate(VALUES):
        call = (value, number)
        if number % 2:
            first, second = (
                function.enqueue(*call).id,
                peer.enqueue("shop.total", *call, options=theirs),
            )
        else:
            first = peer.enqueue("shop.total", *call, options=theirs)
            handle = function.enqueue(*call)
            second = handle.id
            assert not handle.added
        assert first == second
    assert flavour.app.queue().stats().added == len(VALUES)


def test_each_reads_progress_of_the_other_and_cancels_what_it_runs(
    flavour: JobAppFlavour, peer: Peer
) -> None:
    worker = peer.work("node", duration=300)
    running = in_node(flavour, "node.wait").enqueue()
    until(lambda: running.info().progress == (1, 2))
    assert running.info().worker == worker
    assert running.cancel()
    with pytest.raises(JobCancelled):
        running.result(TIMEOUT_SECS)
    assert peer("info", id=running.id, queue="node")["status"] == "cancelled"

    seen = threading.Event()

    @flavour.app.job(name="py.wait")
    def wait(ctx: Context) -> None:
        ctx.progress(2, 3)
        until(seen.is_set)
        ctx.progress({"step": ["upload"]})
        until(lambda: flavour.app.handle(ctx.id, queue="default").status() == "cancelled")

    with flavour.working():
        job_id = peer.enqueue("py.wait")
        until(lambda: peer("info", id=job_id, queue="default").get("progress") == {"done": 2, "total": 3})
        seen.set()
        until(lambda: peer("info", id=job_id, queue="default").get("report") == {"step": ["upload"]})
        assert peer("cancel", id=job_id, queue="default")
        with pytest.raises(PeerError, match="JobCancelled"):
            peer.result()
        assert flavour.app.handle(job_id, queue="default").status() == "cancelled"


def test_messagepack_goes_both_ways(url: str, packed_peer: Peer) -> None:
    with JobAppFlavour(App(url, format="msgpack"), asynchronous=False) as flavour:
        packed_peer.work("node")
        echo = in_node(flavour, "node.echo")
        value = {"bytes": b"\0\xff", "big": 2**63 - 1, "small": -(2**40), "half": 0.5, "none": None}
        assert echo.enqueue(value).result(TIMEOUT_SECS) == value
        assert math.isnan(echo.enqueue(math.nan).result(TIMEOUT_SECS))
        with pytest.raises(JobFailed, match="a map has the key 1, which is no text"):
            echo.enqueue({1: 2}).result(TIMEOUT_SECS)

        @flavour.app.job(name="py.double")
        def double(number: float) -> float:
            return 2 * number

        with flavour.working():
            packed_peer.enqueue("py.double", 2**40)
            assert packed_peer.result() == 2**41
            chain = flavour.app.chain(echo.call(21)).then(double.partial()).enqueue()
            assert chain.result(TIMEOUT_SECS) == 42


def test_chains_go_from_one_to_the_other_and_back(flavour: JobAppFlavour, peer: Peer) -> None:
    @flavour.app.job(name="py.sum")
    def add(numbers: list[float], *more: float, factor: float = 1) -> float:
        return (sum(numbers) + sum(more)) * factor

    @flavour.app.job(name="py.numbers")
    def numbers() -> list[int]:
        return [1, 2]

    peer.work("node")
    echo, pair = in_node(flavour, "node.echo"), in_node(flavour, "node.pair")
    with flavour.working():
        chain = (
            flavour.app.chain(numbers.call())
            .then(echo.partial())
            .then(add.with_options(delay=0.001).partial(10, factor=2))
            .then(pair.with_options(keep=60).partial(separator="EUR"))
            .enqueue()
        )
        assert chain.result(TIMEOUT_SECS) == {"first": 26, "separator": "EUR"}
        assert [stage.status() for stage in chain.stages] == ["succeeded"] * 4
        node = {"queue": "node"}
        ids = peer(
            "chain",
            calls=[
                {"function": "node.echo", "args": [[4, 5]], "options": node},
                {"function": "py.sum", "args": [1], "kwargs": {"factor": 10}},
                {"function": "node.echo", "options": node},
            ],
        )
        assert peer.result() == 100
        assert flavour.app.handle(ids[2], queue="node").result(0) == 100
        assert ids[1:] == [f"{ids[0]}/1", f"{ids[0]}/2"]


def test_workers_of_both_take_turns_of_one_schedule(flavour: JobAppFlavour, peer: Peer) -> None:
    """Each slot gets one job, whichever worker takes the turn and whichever runs the job."""

    @flavour.app.every(0.05, missed="all", keep=600)
    @flavour.app.job(name="both.tick", queue="both")
    def tick() -> str:
        return "python"

    peer("every", ms=50)
    queue = flavour.app.queue("both")

    def more() -> None:
        before = queue.stats().completed
        until(lambda: queue.stats().completed >= before + 5)

    with flavour.working(queues=["both"]):
        more()
        (of_python,) = flavour.app.schedules.inspect("both")
        peer.work("both")
        more()
    more()
    (of_node,) = peer("schedules", queue="both")
    assert (
        (of_node["name"], of_node["function"]) == (of_python.name, of_python.function) == ("both.tick",) * 2
    )
    assert (of_node["rule"], of_node["missed"]) == (of_python.rule, of_python.missed)
    flavour.app.schedules.pause("both.tick", queue="both")
    assert peer("schedules", queue="both")[0]["paused"]
    until(lambda: flavour.app.queue("both").queue_len() == 0)

    ids = [each.id for each in queue.list_items("kept", limit=256).items]
    slots = sorted(int(each.removeprefix("cron:both.tick:")) for each in ids)
    assert slots == list(range(slots[0], slots[-1] + 50, 50))
    assert queue.stats().completed == len(slots)
    ran = [flavour.app.handle(each, queue="both").result(0) for each in ids]
    assert set(ran) == {"python", "node"}


LINES: Final = (
    "*/15 * * * *",
    "30 2 * * *",
    "0 */4 * * *",
    "@hourly",
    "0 0 29 2 *",
    "0 0 13 * 5",
    "0 0 */2 * 5",
    "0 0 13 * */2",
    "*/20 30 2 * * *",
    "0 12 L * *",
    "0 12 * * 5#2",
    "0 9-17/2 1,15 JAN-MAR mon-fri",
    "0 0 * * 7",
)


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "Australia/Lord_Howe"])
def test_both_find_the_same_slots(peer: Peer, name: str) -> None:
    """From evenings before clocks change, and from any other time."""
    for after in (1_774_728_000_000, 1_792_872_000_000, 1_775_297_229_005):
        for line in LINES:
            expected = list(islice(CronTrigger(line, zone(name)).after(after), 8))
            assert all(before < later for before, later in pairwise(expected))
            assert peer("slots", line=line, zone=name, after=after, count=8) == expected, line
