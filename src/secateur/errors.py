"""Define the warning categories of secateur, so that each can be filtered separately."""


class TrainingRowsWarning(UserWarning):
    """Warn that the given rows look like the model's training rows."""


class NothingPrunedWarning(UserWarning):
    """Warn that nothing was pruned and the model is returned unchanged."""


class EverythingPrunedWarning(UserWarning):
    """Warn that every tree was pruned to its root."""


class NoisyChoiceWarning(UserWarning):
    """Warn that the standard error on the validation rows exceeds the allowed loss increase."""


class InterruptedWarning(UserWarning):
    """Warn that Ctrl-C was pressed and the result is incomplete."""
