"""Write a pruned model in a format other than its own."""
