"""Terms of the Allegro-Kuka tasks."""
