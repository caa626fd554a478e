import contextlib
import gc
import os
import signal
import socketserver
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from backcast.core.errors import InputError
from backcast.studies.engines import on_dask
from backcast.studies.engines.local import LocalEngine
from backcast.studies.engines.on_dask import DaskEngine
from backcast.studies.runner import run_study
from backcast.studies.store import Store, machine
from cluster import Cluster, corridor, go_on, kill, outcome, python_without_backcast
from patience import until

psutil, distributed = pytest.importorskip("psutil"), pytest.importorskip("distributed")

STUDY = corridor(1100)
RUNS = 16


@pytest.fixture(autouse=True)
def not_for_ever():
    def stop(*_):
        pytest.fail("it takes too long")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    store = Store(folder / "out", create=True)
    run_study(store, STUDY, engine=LocalEngine(patience=1e9))
    return outcome(store, STUDY, folder)


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Two workers, and a scheduler that has no Backcast, for tests that kill none of them."""
    folder = tmp_path_factory.mktemp("shared")
    python, env = python_without_backcast(folder / "packages")
    with Cluster(folder, python, env) as cluster:
        cluster.start_workers("one", "two")
        yield cluster


@pytest.fixture
def cluster(tmp_path):
    with Cluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "out", create=True)


@contextlib.contextmanager
def meanwhile(disturb):
    """Within, a thread disturbs what happens; if it cannot, nothing goes on."""

    def disturb_or_stop():
        try:
            disturb()
        except BaseException:
            os.kill(os.getpid(), signal.SIGINT)
            raise

    with ThreadPoolExecutor(1) as pool:
        disturbed = pool.submit(disturb_or_stop)
        try:
            yield
        finally:
            disturbed.result()


@pytest.mark.slow
def test_a_cluster_of_its_own_is_started_and_stopped(store, tmp_path, undisturbed):
    seen = []
    summary = run_study(store, STUDY, engine=DaskEngine(workers=2), watch=lambda progress: seen.append(progress))
    assert (summary.runs, summary.failures) == (RUNS, [])
    assert outcome(store, STUDY, tmp_path) == undisturbed
    assert set(seen[-1].by) == {"worker 0", "worker 1"}
    assert not [child for child in psutil.Process().children() if "spawn_main" in " ".join(child.cmdline())]


def test_workers_of_a_scheduler_that_has_no_backcast(shared, store, tmp_path, undisturbed, monkeypatch):
    monkeypatch.setattr(on_dask, "COUNTING", 0.1)
    engine, said, by = DaskEngine(shared.address), [], []

    def watch(progress):
        said.extend(progress.running().items())
        by.append(progress.by)

    run_study(store, STUDY, engine=engine, watch=watch)
    assert outcome(store, STUDY, tmp_path) == undisturbed
    assert set() < set(by[-1]) <= {"one", "two"}  # who is quick may do all of it
    workers = {"one", "two", *shared.client.scheduler_info()["workers"]}  # who has finished nothing has only an address
    assert set() < set(said) <= {(worker, "q in custom-maze") for worker in workers}
    assert engine.running() == {}
    assert shared.client.scheduler_info()["n_workers"] == 2  # somebody else's: left as it was
    assert all(batch["machine"] == machine() for _, batch in store.batches())


@pytest.mark.slow
def test_tasks_that_somebody_else_cancels_are_submitted_again(shared, store, tmp_path, undisturbed):
    cancelled = []

    def cancel():
        keys = until(lambda: [key for keys in shared.client.processing().values() for key in keys])
        futures = [distributed.Future(key, shared.client) for key in keys]
        shared.client.cancel(futures, force=True)
        cancelled.extend(keys)

    with meanwhile(cancel):
        run_study(store, STUDY, engine=DaskEngine(shared.address))
    assert cancelled
    assert outcome(store, STUDY, tmp_path) == undisturbed


@pytest.mark.slow
def test_a_worker_is_killed_in_the_midst_of_a_task(cluster, store, tmp_path, undisturbed):
    cluster.start_workers("lucky", "unlucky")

    def disturb():
        workers = cluster.in_the_midst()
        kill(workers["unlucky"])
        go_on(workers["lucky"])

    with meanwhile(disturb):
        summary = run_study(store, STUDY, engine=DaskEngine(cluster.address))
    assert (summary.runs, summary.failures) == (RUNS, [])
    assert outcome(store, STUDY, tmp_path) == undisturbed


@pytest.mark.slow
def test_all_workers_are_killed_and_others_come(cluster, store, tmp_path, undisturbed):
    cluster.start_workers("one", "two")
    engine, last = DaskEngine(cluster.address), []

    def disturb():
        for process_id in cluster.in_the_midst().values():
            kill(process_id)
        until(lambda: engine.running() == {"dask": "waiting for workers"})
        for name in ("three", "four"):
            cluster.start_worker(name)

    with meanwhile(disturb):
        run_study(store, STUDY, engine=engine, watch=lambda progress: last.append(progress.by))
    assert outcome(store, STUDY, tmp_path) == undisturbed
    assert set(last[-1]) & {"three", "four"}


@pytest.mark.slow
def test_the_scheduler_is_killed_and_started_again(cluster, store, tmp_path, undisturbed):
    cluster.start_workers("one", "two")
    engine = DaskEngine(cluster.address)

    def disturb():
        workers = cluster.in_the_midst()
        kill(cluster.scheduler.pid)
        for process_id in workers.values():
            go_on(process_id)
        until(lambda: engine.running() == {"dask": f"waiting for the scheduler at {cluster.address}"})
        cluster.start_scheduler()
        for name in ("three", "four"):
            cluster.start_worker(name)

    with meanwhile(disturb):
        summary = run_study(store, STUDY, engine=engine)
    assert (summary.runs, summary.failures) == (RUNS, [])
    assert outcome(store, STUDY, tmp_path) == undisturbed


@pytest.mark.slow
def test_a_scheduler_that_does_not_come_back(cluster, store):
    engine = DaskEngine(cluster.address, patience=0.5)

    def disturb():
        until(lambda: engine.running() == {"dask": "waiting for workers"})
        kill(cluster.scheduler.pid)

    with meanwhile(disturb), pytest.raises(ConnectionRefusedError, match=r"has been away for 0\.5 s") as caught:
        run_study(store, STUDY, engine=engine)
    assert caught.value.filename == cluster.address
    assert engine.running() == {}


@pytest.fixture
def web_server():
    """The address of one that takes everybody for a browser, as that of dask's dashboard does."""

    class Server(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.slow
def test_there_is_no_scheduler(store, monkeypatch, capfd, web_server):
    monkeypatch.setattr(on_dask, "CONNECTING", 0.3)
    for address in ("tcp://127.0.0.1:9", "nonsense://where:1", web_server):
        with pytest.raises(InputError, match=f"--scheduler: {address} given, but no dask scheduler answers there"):
            run_study(store, STUDY, engine=DaskEngine(address))
        gc.collect()
    assert capfd.readouterr() == ("", "")


CLIENT = """
    import signal
    import sys
    from pathlib import Path
    from cluster import corridor
    from backcast.studies.engines.on_dask import DaskEngine
    from backcast.studies.runner import run_study
    from backcast.studies.store import Store

    if __name__ == "__main__":
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # it cleans up as after Ctrl-C
        engine = DaskEngine(*sys.argv[2:], workers=2)
        try:
            run_study(Store(sys.argv[1], create=True), corridor(1100), engine=engine)
        except KeyboardInterrupt:
            sys.exit(130)
"""


def start_client(tmp_path, *arguments):
    script = tmp_path / "client.py"
    script.write_text(textwrap.dedent(CLIENT))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-W", "error", str(script), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.PIPE, text=True)


def records(store):
    return list((store.directory / "units").glob("*.json"))


@pytest.mark.slow
def test_the_client_is_killed_and_started_again(shared, store, tmp_path, undisturbed):
    client = start_client(tmp_path, store.directory, shared.address)
    with client:
        until(lambda: client.poll() is not None or (records(store) and any(shared.client.call_stack().values())))
        client.kill()
    assert client.returncode == -signal.SIGKILL
    summary = run_study(store, STUDY, engine=DaskEngine(shared.address))
    assert 0 < summary.runs < RUNS
    assert outcome(store, STUDY, tmp_path) == undisturbed


def alive_in(group):
    """The processes of a group that were not ended."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("who", "later"), [("all", 0.0), ("all", 0.5), ("the client", None)])
def test_an_interrupt_ends_a_cluster_of_its_own_and_nothing_is_said(store, tmp_path, who, later):
    """So many seconds after its processes are there, while they start; None: while they work."""
    client = start_client(tmp_path, store.directory)

    def workers():
        return [each for each in psutil.Process(client.pid).children() if "spawn_main" in " ".join(each.cmdline())]

    with client:
        until(lambda: client.poll() is not None or (records(store) if later is None else workers()))
        time.sleep(later or 0)
        if who == "all":  # Ctrl-C in a terminal
            os.killpg(client.pid, signal.SIGINT)
        else:
            client.terminate()
        said = client.stderr.read()
    assert (client.returncode, said) == (130, "")
    until(lambda: not alive_in(client.pid))


# units that cannot be performed


GOOD = {"kind": "q"}
HANGING = {"kind": "maze", "text": f"S{'.' * 50_000}G", "max_steps": 10**15}


def quick(*agents, worlds=(), seeds=4):
    """A study that takes no time, but for what may be added to it."""
    return corridor(1, seeds=seeds, worlds=[{"kind": "maze"}, *worlds], agents=[*agents] or [GOOD])


def table_of(study, folder):
    """What comes of a study without any trouble."""
    store = Store(folder / "undisturbed", create=True)
    run_study(store, study)
    return outcome(store, study, folder)


@pytest.mark.slow
def test_a_unit_that_raises_is_reported_and_the_others_finish(shared, store, tmp_path):
    study = quick(GOOD, {"kind": "q", "label": "wrong", "alpha": [0.1, 0.2, 0.3]})
    summary = run_study(store, study, engine=DaskEngine(shared.address))
    assert summary.runs == 4
    assert sorted(seed for failed in summary.failures for seed in failed.unit.seeds) == [0, 1, 2, 3]
    for failed in summary.failures:
        assert failed.error == "InputError: alpha: a list of 3 given for 2 episodes; expected one per episode"
        assert failed.details.startswith("Traceback")
    assert outcome(store, quick(), tmp_path) == table_of(quick(), tmp_path)


@pytest.mark.slow
def test_a_unit_that_hangs_is_killed_after_its_time(shared, store, tmp_path):
    study = quick(worlds=[HANGING], seeds=1)
    summary = run_study(store, study, engine=DaskEngine(shared.address, time_limit=3.0))
    assert [failed.error for failed in summary.failures] == [
        "TimeLimit: not finished after 3 s, the time limit of a unit"
    ]
    assert outcome(store, quick(seeds=1), tmp_path) == table_of(quick(seeds=1), tmp_path)


@pytest.mark.slow
def test_a_unit_whose_process_dies_is_tried_again_and_then_given_up(cluster, store, tmp_path):
    worker = psutil.Process(cluster.start_worker("one").pid)
    done = []

    def child(other_than=None):
        for each in worker.children():
            with contextlib.suppress(psutil.Error):  # it has just ended
                if each != other_than and "backcast.studies.engines.child" in each.cmdline():
                    return each
        return None

    def disturb():
        until(lambda: sum(done) == 1)
        first = until(child)
        first.kill()
        until(lambda: child(other_than=first)).kill()

    study = quick(worlds=[HANGING], seeds=1)
    with meanwhile(disturb):
        engine = DaskEngine(cluster.address, time_limit=30.0)
        summary = run_study(store, study, engine=engine, watch=lambda progress: done.append(progress.done))
    assert [failed.error for failed in summary.failures] == [
        "Died: the process that performed it ended with signal 9, 2 times"
    ]
    assert outcome(store, quick(seeds=1), tmp_path) == table_of(quick(seeds=1), tmp_path)


KILLER = """
    import os, signal, time
    from backcast.studies.engines import dask_worker
    from backcast.studies.units import perform

    def perform_or_die(unit):
        if unit.cell.label == "killer":
            time.sleep(0.5)  # a nanny gives up if its worker dies before it has reported
            os.kill(os.getpid(), signal.SIGKILL)
        if unit.cell.label == "endless":
            return perform_or_die(unit)
        return perform(unit)

    dask_worker.perform = perform_or_die
"""


@pytest.mark.slow
def test_a_unit_that_kills_its_workers_fails_and_no_other(store, tmp_path):
    (tmp_path / "killer.py").write_text(textwrap.dedent(KILLER))
    settings = {"ALLOWED_FAILURES": "1", "WORKER_SATURATION": "inf"}  # tasks wait on the worker, not for it
    env = {**os.environ, **{f"DASK_DISTRIBUTED__SCHEDULER__{name}": value for name, value in settings.items()}}
    killer, endless = ({**GOOD, "label": label, "alpha": 0.25} for label in ("killer", "endless"))
    with Cluster(tmp_path, env=env) as cluster:
        cluster.start_worker("one", "--nanny", "--preload", str(tmp_path / "killer.py"))
        study = quick(killer, GOOD, endless, seeds=1)  # the good one waits on the worker that the killer kills
        summary = run_study(store, study, engine=DaskEngine(cluster.address))
    assert outcome(store, quick(seeds=1), tmp_path) == table_of(quick(seeds=1), tmp_path)
    failures = {failed.unit.cell.label: failed for failed in summary.failures}
    assert failures.keys() == {"killer", "endless"}
    assert failures["killer"].error.startswith("Died: the worker that performed it died, 2 times")
    assert failures["endless"].error.startswith("RecursionError: maximum recursion depth exceeded")
    assert failures["endless"].details.startswith("Traceback")


# versions

OTHER_NUMBA = """
    import importlib.metadata

    version = importlib.metadata.version
    importlib.metadata.version = lambda name: "0.1.2" if name == "numba" else version(name)
"""


@pytest.mark.slow
def test_a_worker_that_joins_with_another_version_is_refused(cluster, store, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(OTHER_NUMBA))
    cluster.start_worker("right")

    def disturb():
        until(lambda: records(store))
        cluster.start_worker("wrong", env={**os.environ, "PYTHONPATH": str(tmp_path)})

    sentence = f"worker wrong has numba 0.1.2, but here it is numba {machine()['numba']}"
    with meanwhile(disturb), pytest.raises(InputError, match=sentence):
        run_study(store, STUDY, seeds=1000, engine=DaskEngine(cluster.address))
    assert records(store)


@pytest.mark.slow
def test_a_worker_without_backcast_is_refused(cluster, store, tmp_path):
    python, env = python_without_backcast(tmp_path / "packages")
    cluster.start_worker("bare", python=python, env=env)
    with pytest.raises(
        InputError, match=f"worker bare has no backcast, but here it is backcast {machine()['backcast']}"
    ):
        run_study(store, STUDY, engine=DaskEngine(cluster.address))
