"""Running over obstacles from goal to goal, on a terrain curriculum."""
