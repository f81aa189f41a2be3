from run import Comparison

TITLE = (
    "What the trainer adds to a step: a model with one parameter in `fit`, with a checkpoint callback that does not "
    "save and a CSV row every 50 steps, less the same forward, backward and optimizer calls in a bare loop of the "
    "same library. Once with each side's loader (no workers), once without: Cytra less the time of its loader alone, "
    "Lightning given a list of ready batches."
)


def comparisons(env):
    ours = env.bin.parent / "benchmarks" / "bench_trainer"
    figures = {
        "trainer and loader": "json:overhead_us us",
        "trainer alone": "json:alone_us us",
        "the bare step": "json:bare_us us",
    }
    return [
        Comparison(
            "one step",
            [ours, env.scratch, 10000, 5],
            [env.python, env.here / "trainer_overhead_peer.py", env.scratch, 1000, 3],
            figures,
            "Lightning",
        )
    ]
