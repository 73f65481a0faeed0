"""What secateur warns of, as classes, so that each can be silenced or turned into an error."""


class TrainingRowsWarning(UserWarning):
    """The rows passed look like the rows the model was trained on."""


class NothingPrunedWarning(UserWarning):
    """The model came back as it was."""


class EverythingPrunedWarning(UserWarning):
    """Nothing is left of the trees but their roots."""


class NoisyChoiceWarning(UserWarning):
    """The rows that chose cannot tell a difference as small as the one allowed."""


class InterruptedWarning(UserWarning):
    """Ctrl-C was pressed, and the path ends early."""
