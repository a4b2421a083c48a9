import multiprocessing

WARM_UP = (8, 4)


def run_core(requests, answers):
    from worker import work

    spawn = multiprocessing.get_context("spawn")
    queues, done = [spawn.Queue() for _ in range(2)], spawn.Queue()
    workers = [
        spawn.Process(target=work, args=(rank, queue, done), name=f"Worker-{rank}") for rank, queue in enumerate(queues)
    ]
    for worker in workers:
        worker.start()
    sizes = WARM_UP
    while sizes is not None:
        for queue in queues:
            queue.put(sizes)
        answers.put(sorted(done.get() for _ in workers))
        sizes = requests.get()
    for queue in queues:
        queue.put(None)
    for worker in workers:
        worker.join()
