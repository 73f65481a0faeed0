"""SkillCraft: 3395 players of a game, 18 measures of play, league."""

from benchmarks.load import DataSet

DATA = DataSet(name="skillcraft", task="regression", shared="skillcraft")
