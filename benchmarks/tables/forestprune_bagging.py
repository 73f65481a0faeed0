"""Liu and Mazumder 2023, section 4.1: bagged ensembles within a loss."""

from benchmarks.discovery import Table
from benchmarks.ensemble_tables import run

TABLE = Table(
    "forestprune_bagging",
    "Bagged ensembles within a limit on the loss (ForestPrune paper, section 4.1)",
    lambda quick: run("bagging", quick),
)
