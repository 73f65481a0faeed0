"""Define the exceptions and warning categories of secateur, so that each can be caught or filtered separately."""


class SecateurError(ValueError):
    """Base class of the errors that a user can fix: each message says what was found, what is needed and what to do."""


class InvalidInputError(SecateurError):
    """Raise if an argument, or the given rows, targets, weights or prices, are not valid."""


class UnsupportedModelError(SecateurError, TypeError):
    """Raise if a model, or a feature that it uses, is not supported."""


class UnsupportedProblemError(SecateurError):
    """Raise if a solver cannot handle this combination of forest, rows, loss and cost."""


class UnsupportedFileError(SecateurError):
    """Raise if the suffix, the format or the version of a file is not supported, or the file needs `trust=True`."""


class DamagedFileError(SecateurError):
    """Raise if the content of a file is not valid for its format."""


class NoPruningWithinLimitsError(SecateurError):
    """Raise if no point of a path satisfies the limits."""


class TrainingRowsWarning(UserWarning):
    """Warn that the given rows look like the model's training rows."""


class UnknownObjectiveWarning(UserWarning):
    """Warn that the model was or may have been trained for a loss, or with offsets, that it does not store."""


class NothingPrunedWarning(UserWarning):
    """Warn that nothing was pruned and the model is returned unchanged."""


class EverythingPrunedWarning(UserWarning):
    """Warn that every tree was pruned to its root."""


class NoisyChoiceWarning(UserWarning):
    """Warn that the standard error on the validation rows exceeds the allowed loss increase."""


class UnusualArgumentWarning(UserWarning):
    """Warn that an argument is allowed, but probably not what was meant."""


class FewRowsWarning(UserWarning):
    """Warn that a pruning is chosen by few rows."""


class InterruptedWarning(UserWarning):
    """Warn that Ctrl-C was pressed and the result is incomplete."""
