from timeit import timeit

from prometheus_client import Histogram

seconds = Histogram("seconds", "Time.")
print("more than 0.2 microseconds each:", timeit(lambda: seconds.observe(0.01), number=100_000) * 10 > 0.2)
print("a method for many:", any("many" in name or "all" in name for name in dir(seconds)))
