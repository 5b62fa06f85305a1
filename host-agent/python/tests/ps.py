"""Three ranks: a parameter server in all modes, with the backend BACKEND, by default `weir`. Exits with 0 if all is right.

Who pushes when is forced: a rank goes on when another one has told it to, by torch's store.
"""

import os
import threading
import time
from contextlib import contextmanager

import torch
import torch.distributed as dist

import weir
import weir.torch
from weir.ps import Differs, Lost, Plan, Server, Worker, rules
from weir.ps.layout import Layout
from weir.ps.messages import HEADER_BYTES
from weir.ps.rules import Taken

dist.init_process_group(os.environ.get("BACKEND", "weir"))
rank, size = dist.get_rank(), dist.get_world_size()
assert size == 3
store = dist.PrefixStore("tests", dist.distributed_c10d._get_default_store())
by_switch = bool(weir.torch.counters())


def told(what):
    store.set(what, "yes")


def heard(what):
    store.wait([what])


def raises(kind, *texts):
    """Checks that the block raises an error with these texts."""

    @contextmanager
    def fails():
        try:
            yield
        except kind as error:
            assert all(text in str(error) for text in texts), (error, texts)
        else:
            raise AssertionError(f"no {kind.__name__}: {texts}")

    return fails()


def parameters(value=0.0, *shapes):
    return [torch.full(shape, value, requires_grad=True) for shape in shapes or ((3,), (2, 2))]


def ones(value):
    """The same gradient for all parameters."""
    return [torch.full((3,), value), torch.full((2, 2), value)]


def descent(of):
    """Checks the values of all parameters."""
    return torch.optim.SGD(of, lr=1.0)


def are(of, value):
    assert all((one == value).all() for one in of), (of, value)


def until(server, watch):
    """Serves, and calls a function that watches the counters at the same time."""
    failed = []

    def watches():
        try:
            watch()
        except Exception as error:  # noqa: BLE001: raised below
            failed.append(error)

    thread = threading.Thread(target=watches)
    thread.start()
    try:
        return server.run()
    finally:
        thread.join()
        assert not failed, failed


def reaches(server, **counts):
    """Waits until the server's counters have these values."""
    deadline = time.monotonic() + 60
    while any(server.counters()[name] < count for name, count in counts.items()):
        assert time.monotonic() < deadline, (server.counters(), counts)
        time.sleep(0.002)


def settings():
    """Invalid plans raise an error with the reason."""
    for wrong, text in (
        (dict(mode="fast"), "sync, async, stale, fastest"),
        (dict(mode="stale"), "mode stale needs 0 or more"),
        (dict(mode="stale", staleness=-1), "mode stale needs 0 or more"),
        (dict(mode="fastest", fastest=0), "mode fastest needs 1 or more"),
        (dict(mode="fastest", fastest=1, late="never"), "'drop' or 'next'"),
        (dict(mode="async", staleness=1), "is for mode stale"),
        (dict(servers=[]), "at least one"),
        (dict(servers=[1, 1]), "each once"),
        (dict(on_lost="continue"), "in mode sync"),
        (dict(mode="async", on_lost="cry"), "'fail' or 'continue'"),
        (dict(mode="async", lost_after=0), "number of seconds"),
    ):
        with raises(ValueError, "weir.ps: ", text):
            Plan(**wrong)
    # The largest first, to the server with the least.
    assert Plan(servers=[2, 5]).shards([10, 40, 25, 20]) == {2: [0, 1], 5: [2, 3]}
    assert Plan(servers=[1]).workers(4) == [0, 2, 3]


def modes_apart():
    """The rules of the modes, without a network."""
    stale = rules.Stale([1, 2, 3], 1)
    for worker, is_answered in ((1, True), (1, False), (2, True), (3, True)):
        assert stale.take(worker, 0, 0) == Taken.KEPT and stale.is_due(1)
        assert stale.answers(worker) == is_answered, worker
    assert stale.answers(1) and stale.ahead(1) == 1
    stale.take(1, 0, 0)
    stale.take(2, 0, 0)
    assert not stale.answers(1) and stale.answers(2)
    stale.leave(3)
    assert stale.answers(1)
    for late, taken in (("drop", Taken.DROPPED), ("next", Taken.LATE)):
        fastest = rules.Fastest([1, 2, 3], 2, late)
        assert fastest.take(1, 4, 4) == Taken.KEPT and not fastest.is_due(1) and not fastest.answers(1)
        # Late pushes get replies at once, and make no step alone.
        assert fastest.take(2, 3, 4) == taken and not fastest.is_due(2) and fastest.answers(2)
        assert fastest.take(3, 4, 4) == Taken.KEPT and fastest.is_due(3)
        fastest.stepped()
        assert fastest.answers(1) and fastest.answers(3) and not fastest.is_due(0)
        fastest.take(1, 5, 5)
        fastest.leave(2)
        assert not fastest.is_due(1)
        fastest.leave(3)
        assert fastest.is_due(1)


def layouts():
    torch.manual_seed(1)
    types = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
    tensors = [torch.randn(of, of + 1).to(dtype) for of, dtype in enumerate(types)]
    layout = Layout(tensors)
    views = layout.views(layout.pack(tensors, layout.buffer()))
    assert all(torch.equal(view, tensor) and view.dtype == tensor.dtype for view, tensor in zip(views, tensors))
    rows = torch.sparse_coo_tensor(torch.tensor([[1]]), torch.ones(1, 3), (2, 3))
    layout = Layout([torch.zeros(2, 3), torch.zeros(5)])
    views = layout.views(layout.pack([rows, None], torch.ones(layout.bytes, dtype=torch.uint8)))
    assert torch.equal(views[0], rows.to_dense()) and (views[1] == 0).all()


def differences():
    """All ranks raise the difference with the rank's number, and the next server works."""

    def begins(plan, of, is_server=rank == 0):
        return Server(of, descent(of), plan) if is_server else Worker(of, plan)

    with raises(Differs, "rank 2 has other parameters than rank 0", "number 1 is [2, 3] of torch.float32, not [2, 2]"):
        begins(Plan(), parameters(0.0, (3,), (2, 3) if rank == 2 else (2, 2)))
    with raises(Differs, "rank 1 has other parameters", "1, not 2"):
        begins(Plan(), parameters()[: 1 if rank == 1 else 2])
    with raises(Differs, "rank 1 has other parameters", "torch.float64, not [3] of torch.float32"):
        begins(Plan(), [of.double() if rank == 1 else of for of in parameters()])
    with raises(Differs, "rank 2 has another plan than rank 0: staleness=2, not 1"):
        begins(Plan(mode="stale", staleness=1 + (rank == 2)), parameters())
    with raises(Differs, "rank 1 is a server, but the servers are [0]"):
        begins(Plan(), parameters(), rank != 2)
    others = parameters()
    with raises(Differs, "rank 0: its optimizer has other parameters"):
        Server(others, descent(parameters()), Plan()) if rank == 0 else Worker(others, Plan())
    with raises(Differs, "server 7 does not exist"):
        begins(Plan(servers=[0, 7]), parameters())
    with raises(Differs, "there is no worker"):
        begins(Plan(servers=[0, 1, 2]), parameters(), True)
    with raises(Differs, "fastest=3 exceeds the 2 workers"):
        begins(Plan(mode="fastest", fastest=3), parameters())
    with raises(Differs, "must be floats"):
        begins(Plan(), [torch.zeros(3, dtype=torch.int32)])
    with raises(Differs, "2 servers, but only 1 parameters"):
        begins(Plan(servers=[0, 1]), parameters()[:1], rank < 2)


def in_step():
    """Mode sync: the same bits as with an all_reduce and an optimizer at each rank."""
    # Longer than a window, so that the exponents do not depend on earlier sums.
    length = 256 * int(os.environ.get("WEIR_WINDOW", 16)) + 1000
    torch.manual_seed(rank)
    of = [torch.randn(length, requires_grad=True), torch.randn(3, 5).double().requires_grad_()]
    plan = Plan()

    def gradients(step):
        torch.manual_seed(100 * step + rank)
        return [torch.zeros_like(one) if rank == 0 else torch.randn(one.shape).to(one.dtype) for one in of]

    hand = [one.detach().clone() for one in of]
    for one in hand:
        dist.broadcast(one, 0)
        one.requires_grad_()
    by_hand = torch.optim.SGD(hand, lr=0.1, momentum=0.9)
    expected = []
    for step in range(3):
        for one, gradient in zip(hand, gradients(step)):
            dist.all_reduce(gradient)
            one.grad = gradient / (size - 1)
        by_hand.step()
        expected.append([one.detach().clone() for one in hand])
    before = weir.torch.counters().get("bytes", 0)
    if rank == 0:
        server = Server(of, torch.optim.SGD(of, lr=0.1, momentum=0.9), plan)
        counted = server.run()
        assert counted["steps"] == 3 and counted["pushes"] == 6 and counted["left"] == 2, counted
    else:
        with Worker(of, plan) as worker:
            for step in range(3):
                if step == 0:
                    worker.push(gradients(step))
                    worker.pull()
                elif step == 1:
                    for one, gradient in zip(of, gradients(step)):
                        one.grad = gradient
                    worker.push_pull()
                else:
                    worker.push_pull(gradients(step))
                assert all(torch.equal(one, other) for one, other in zip(of, expected[step])), step
        assert worker.steps == {0: 3}
    assert all(torch.equal(one, other) for one, other in zip(of, expected[-1]))
    if by_switch:
        # Three times as gradients, of which Gloo sums float64, and four times as parameters; the server's link carries the same
        # as a worker's.
        values = 4 * (7 * length + 4 * 30)
        sent = weir.torch.counters()["bytes"] - before
        assert 1.02 <= sent / values <= 1.3, (sent, values)


def out_of_step():
    """Workers with different actions; values that are not finite; a worker whose program fails."""
    of = parameters()
    plan = Plan()
    if rank == 0:
        with raises(Lost, "PUSH by rank 1, PULL by rank 2"):
            Server(of, descent(of), plan).run()
    else:
        with raises(Lost, "PUSH by rank 1, PULL by rank 2"), Worker(of, plan) as worker:
            worker.push(ones(1.0)) if rank == 1 else worker.pull()
    if rank == 0:
        with raises(Lost, "worker rank 2 has failed"):
            Server(of, descent(of), plan).run()
    else:
        with raises(*((Lost, "worker rank 2 has failed") if rank == 1 else (KeyError, "mine"))), Worker(of, plan) as worker:
            if rank == 2:
                raise KeyError("mine")
            worker.push_pull(ones(1.0))
    if not by_switch or os.environ.get("WEIR_NON_FINITE") == "gloo":
        return
    of = parameters(5.0)
    if rank == 0:
        counted = Server(of, descent(of), plan).run()
        assert counted["dropped"] == 2 and counted["steps"] == 1, counted
    else:
        with Worker(of, plan) as worker:
            with raises(weir.NonFinite, "not finite"):
                worker.push_pull(ones(float("nan") if rank == 1 else 1.0))
            are(of, 5)
            worker.push_pull(ones(0.0))
    are(of, 5)


def one_after_the_other():
    """Mode async: each push is applied on arrival, and its reply has the new parameters."""
    of = parameters(7.0 if rank == 0 else 0.0)
    plan = Plan(mode="async")
    if rank == 0:
        steps = []
        counted = Server(of, descent(of), plan, on_step=steps.append).run()
        assert steps == [1, 2, 3, 4], steps
        assert counted["staleness"] == {0: 3, 3: 1}, counted
        assert (counted["pushes"], counted["steps"], counted["held"], counted["left"]) == (4, 4, 0, 2), counted
        # Traffic: a gradient per push, the parameters per pull, and a header per message.
        whole = Layout(of).bytes
        # For each worker: a pull at the start, the following calls, and a leave.
        assert counted["received"] == 4 * whole + 9 * HEADER_BYTES, counted
        assert counted["sent"] == 6 * whole + 9 * HEADER_BYTES, counted
        are(of, 7 - 3 - 0.5)
        return
    with Worker(of, plan) as worker:
        are(of, 7)
        if rank == 2:
            told("begun")
            heard("three")
            # Its parameters are three steps old.
            worker.push(ones(0.5))
            are(of, 7)
            worker.pull()
            are(of, 3.5)
            told("four")
        else:
            heard("begun")
            for step in range(3):
                worker.push_pull(ones(1.0))
                are(of, 7 - step - 1)
            told("three")
            heard("four")
        assert worker.steps == {0: 4 if rank == 2 else 3}


def ahead():
    """Mode stale: a worker too far ahead gets its reply when the slowest has pushed, is lost, or has left."""
    of = parameters()
    plan = Plan(mode="stale", staleness=1, on_lost="continue")
    if rank == 0:
        server = Server(of, descent(of), plan)

        def watch():
            reaches(server, pushes=2, held=1)
            told("held")
            reaches(server, pushes=4, held=2)
            told("held again")

        counted = until(server, watch)
        assert (counted["pushes"], counted["held"], counted["lost"], counted["left"]) == (4, 2, 1, 1), counted
        assert counted["ahead"] == 1, counted
        are(of, -4)
    elif rank == 1:
        with Worker(of, plan) as worker:
            worker.push_pull(ones(1.0))
            are(of, -1)
            # It is two ahead, and gets the parameters with rank 2's push.
            worker.push_pull(ones(1.0))
            are(of, -3)
            # Two ahead once more: until rank 2 is lost.
            worker.push_pull(ones(1.0))
            are(of, -4)
            assert worker.steps == {0: 4}
    else:
        with raises(ZeroDivisionError), Worker(of, plan) as worker:
            heard("held")
            worker.push(ones(1.0))
            heard("held again")
            raise ZeroDivisionError


def the_first():
    """Mode fastest: the first pushes make a step, and a late one joins none, or the next one."""
    for late in ("drop", "next"):
        of = parameters()
        plan = Plan(mode="fastest", fastest=1, late=late)
        if rank == 0:
            counted = Server(of, descent(of), plan).run()
            assert (counted["pushes"], counted["late"], counted["left"]) == (4, 1, 2), counted
            assert counted["dropped"] == (1 if late == "drop" else 0), counted
            assert counted["steps"] == 3 and counted["staleness"] == {0: 3, 2: 1}, counted
        else:
            with Worker(of, plan) as worker:
                if rank == 1:
                    # The other worker has the initial parameters.
                    heard(f"begun {late}")
                    worker.push_pull(ones(1.0))
                    worker.push_pull(ones(1.0))
                    are(of, -2)
                    told(f"two {late}")
                    heard(f"late {late}")
                    worker.push_pull(ones(1.0))
                    # The mean of its two pushes.
                    are(of, -3 if late == "drop" else -4)
                else:
                    told(f"begun {late}")
                    heard(f"two {late}")
                    worker.push_pull(ones(3.0))
                    # The reply comes at once, with the current parameters.
                    are(of, -2)
                    told(f"late {late}")
        dist.barrier()


def all_of_two():
    """Mode fastest of all workers: no reply before all have pushed; after one has left, the other is enough."""
    of = parameters()
    plan = Plan(mode="fastest", fastest=2)
    if rank == 0:
        server = Server(of, descent(of), plan)

        def watch():
            reaches(server, pushes=1, held=1)
            assert server.counters()["steps"] == 0
            told("one of two")
            reaches(server, pushes=3, held=2)
            told("one of one")

        counted = until(server, watch)
        assert counted["steps"] == 2 and counted["left"] == 2 and counted["late"] == 0, counted
        return
    with Worker(of, plan) as worker:
        if rank == 1:
            worker.push_pull(ones(1.0))
            are(of, -2)
            worker.push_pull(ones(1.0))
            are(of, -3)
        else:
            heard("one of two")
            worker.push_pull(ones(3.0))
            are(of, -2)
            heard("one of one")


def silent():
    """A silent worker is lost after the timeout, and its next push is refused with that reason."""
    of = parameters()
    plan = Plan(mode="stale", staleness=0, on_lost="continue", lost_after=2.0)
    if rank == 0:
        counted = Server(of, descent(of), plan).run()
        assert (counted["pushes"], counted["lost"], counted["left"]) == (1, 1, 1), counted
    elif rank == 1:
        with Worker(of, plan) as worker:
            worker.push_pull(ones(1.0))
            are(of, -1)
            told("went on")
            # In the meantime this worker is not silent.
            while store.add("was told", 0) == 0:
                worker.pull()
                time.sleep(0.05)
    else:
        with Worker(of, plan) as worker:
            heard("went on")
            with raises(Lost, "has declared this worker lost", "sent nothing for 2 s"):
                worker.push(ones(1.0))
            store.add("was told", 1)
            worker._has_left = True


def several_servers():
    """Each server has some of the parameters; in every mode the worker has all of them."""
    for plan in (Plan(servers=[0, 2]), Plan(mode="async", servers=[0, 2])):
        of = parameters(float(rank))
        if rank != 1:
            counted = Server(of, descent(of), plan).run()
            assert counted["steps"] == 2, counted
            # Rank 0 has the larger parameter.
            are(of[1:] if rank == 0 else of[:1], rank - 2)
        else:
            with Worker(of, plan) as worker:
                are(of[1:], 0)
                are(of[:1], 2)
                worker.push(ones(1.0))
                worker.push_pull(ones(1.0))
                are(of[1:], -2)
                are(of[:1], 0)
                assert worker.steps == {0: 2, 2: 2}


def failures():
    """A server whose own code fails raises its error, and the workers get it, too."""
    of = parameters()
    plan = Plan(mode="async")

    def fails(step):
        raise KeyError("the server's")

    if rank == 0:
        with raises(KeyError, "the server's"):
            Server(of, descent(of), plan, on_step=fails).run()
    else:
        with raises(Lost, "server rank 0 has failed", "the server's"), Worker(of, plan) as worker:
            worker.push(ones(1.0))
    # A worker fails, and the plan ends all ranks.
    if rank == 0:
        with raises(Lost, "worker rank 1 has failed: RuntimeError: mine"):
            Server(of, descent(of), plan).run()
    elif rank == 1:
        with raises(RuntimeError, "mine"), Worker(of, plan) as worker:
            raise RuntimeError("mine")
    else:
        with raises(Lost, "server rank 0: worker rank 1 has failed: RuntimeError: mine"), Worker(of, plan) as worker:
            while True:
                worker.push(ones(0.0))


def wrong_gradients():
    of = parameters()
    plan = Plan(mode="async")
    if rank == 0:
        assert Server(of, descent(of), plan).run()["pushes"] == 2
        return
    with Worker(of, plan) as worker:
        with raises(ValueError, "1 gradients for 2 parameters"):
            worker.push(ones(1.0)[:1])
        with raises(ValueError, "gradient number 1 has the shape [3], but the parameter [2, 2]"):
            worker.push([torch.ones(3), torch.ones(3)])
        # By default, the gradients of backward.
        of[0].grad, of[1].grad = torch.ones(3), None
        worker.push()
    with raises(RuntimeError, "has left"):
        worker.pull()


def missing_gradients():
    """A parameter without any gradient is unchanged: no weight decay, no momentum. If some workers have one, the others count
    as zeros."""
    shapes, steps = ((3,), (2, 2), (4,)), 3
    optimizers = (
        lambda of: torch.optim.AdamW(of, lr=0.1, weight_decay=0.5),
        lambda of: torch.optim.SGD(of, lr=0.1, momentum=0.9, weight_decay=0.5),
    )
    plans = (Plan(), Plan(mode="fastest", fastest=2), Plan(mode="async"), Plan(mode="stale", staleness=9))
    for plan, optimizer in ((plan, optimizer) for plan in plans for optimizer in optimizers):
        is_joint = plan.mode in ("sync", "fastest")
        of, hand = parameters(1.0, *shapes), parameters(1.0, *shapes)
        by_hand = optimizer(hand)
        for step in range(steps if is_joint else 2 * steps):
            hand[0].grad = torch.ones(3)
            hand[2].grad = torch.ones(4) if is_joint else torch.full((4,), 2.0) if step < steps else None
            by_hand.step()
        if rank == 0:
            Server(of, optimizer(of), plan).run()
        else:
            with Worker(of, plan) as worker:
                for _ in range(steps):
                    worker.push_pull([torch.ones(3), None, torch.full((4,), 2.0) if rank == 1 else None])
        are(of[1:2], 1)
        if rank == 0 or is_joint:
            assert all(torch.allclose(one, other) for one, other in zip(of, hand)), (plan, of, hand)
        dist.barrier()


CHECKS = (
    *(settings, modes_apart, layouts, differences, in_step, out_of_step, one_after_the_other, ahead, the_first),
    *(all_of_two, silent, several_servers, failures, wrong_gradients, missing_gradients),
)
for check in CHECKS:
    check()
    # So that all ranks have finished a case before the next one.
    dist.barrier()
print("right", flush=True)
# Rank 0 hosts the store, and must leave last.
dist.barrier()
