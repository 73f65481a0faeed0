"""What checks of faults do in processes of their own."""
