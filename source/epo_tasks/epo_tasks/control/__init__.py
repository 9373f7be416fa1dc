"""Control tasks of the DeepMind Control Suite."""
