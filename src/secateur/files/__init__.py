"""Read and write model files: formats by suffix, archives, atomic writes."""
