"""Importing this module refuses, with a NameClash, packages of the user's that stand in for ours.

`graph/agent.py` imports it before anything else of ours: the clash is then named where it is, not where it breaks.
"""

from surestep import refuse_foreign_packages

refuse_foreign_packages()
