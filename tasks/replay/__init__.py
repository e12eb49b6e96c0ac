"""The recorded web: news sites of the past (or invented ones) served again, on our clock.

`history`    what happened: sources, entries, faults, redesigns; all of it data
`sample`     the twelve invented sites that ship
`recording`  real publication times and real pages, from a folder of recordings
`pages`      listings and article pages as bytes
`hosted`     which page an address holds at a moment
`app`        HTTP in front of a history: hosts, validators, faults, statistics
`server`     the app on a loopback port; ``python -m tasks.replay`` runs it by hand
"""
