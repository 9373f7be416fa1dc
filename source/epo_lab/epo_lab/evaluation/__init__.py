"""Play whole episodes and score them, beside published scores."""
