"""Who lives: fitness, selection, crossover, mutation and lineage of genes. Pure torch, nothing of rsl_rl."""
