"""Select whole trees: fewer trees, the tree lasso, best subset selection."""
