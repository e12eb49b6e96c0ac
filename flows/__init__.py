"""Order, retries, concurrency, failure: the flows, the worker, the command line."""
