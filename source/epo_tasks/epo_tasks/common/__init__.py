"""Environment, actions, randomisation, scene and physics that the tasks share."""
