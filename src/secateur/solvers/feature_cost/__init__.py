"""Trade classification errors or loss against the cost of the features that rows need."""
