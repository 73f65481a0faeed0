"""Name losses as scikit-learn names its scorers.

A limit on the increase of the loss is a fraction of the unpruned model's loss, so a loss may be rescaled without
changing any choice: `neg_brier_score` is half of Brier for two classes. `r2` is 1 − squared error / variance of the
targets; its distance from 1 is a multiple of the squared error, so both choose the same point. A root, as in
`neg_root_mean_squared_error`, changes what a fraction means, so it is no alias; pass it as `scoring`.
"""

ALIASES = {
    "accuracy": "zero_one",
    "neg_brier_score": "brier",
    "neg_log_loss": "log_loss",
    "neg_mean_absolute_error": "absolute_error",
    "neg_mean_gamma_deviance": "gamma",
    "neg_mean_pinball_loss": "quantile",
    "neg_mean_poisson_deviance": "poisson",
    "neg_mean_squared_error": "squared_error",
    "neg_mean_squared_log_error": "squared_log_error",
    "r2": "squared_error",
    "roc_auc": "auc",
}
"""Name of the loss that measures the same as a scorer of scikit-learn."""
