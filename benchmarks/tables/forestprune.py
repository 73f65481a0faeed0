"""Liu and Mazumder 2023, section 4.2: boosted ensembles within a number of nodes."""

from benchmarks.discovery import Table
from benchmarks.ensemble_tables import run

TABLE = Table(
    "forestprune",
    "Boosted ensembles within a node budget (ForestPrune paper, section 4.2)",
    lambda quick: run("boosting", quick),
)
