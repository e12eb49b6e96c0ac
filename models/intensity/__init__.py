"""How many entries per hour a source puts out: one estimator a file.

All estimators keep their figures of one source in one record (`models.intensity.state`)
and answer the same two calls (`models.intensity.estimator`), so that any of them drives
any policy that polls by a forecast.
"""
