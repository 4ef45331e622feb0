"""Run the units of a scenario on this machine or a cluster, survive what happens meanwhile, and leave a result folder.

What a unit does is its own affair: it runs, its part is saved, and a part is loaded again for the report.
"""
