"""A small engine in the shape of vLLM's: a front end without torch, an engine core, and two workers that compile.

`serve.py 4 7` asks for two answers of these sizes after the warm-up, `serve.py 4 forever` for answers without end.
"""

import itertools
import multiprocessing
import sys

import engine

if __name__ == "__main__":
    spawn = multiprocessing.get_context("spawn")
    requests, answers = spawn.Queue(), spawn.Queue()
    core = spawn.Process(target=engine.run_core, args=(requests, answers), name="EngineCore")
    core.start()
    print("warm", answers.get())
    sizes = [int(size) for size in sys.argv[1:] if size != "forever"]
    for size in itertools.cycle(sizes) if "forever" in sys.argv else sizes:
        requests.put((size,))
        print("answer", answers.get())
    requests.put(None)
    core.join()
    print("exit", core.exitcode)
