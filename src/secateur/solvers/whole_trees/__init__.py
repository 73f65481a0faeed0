"""Keep or drop whole trees: shorter ensembles, the tree lasso, best subset selection."""
