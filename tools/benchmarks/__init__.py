"""What is measured about speed and stability; not part of the packages."""
