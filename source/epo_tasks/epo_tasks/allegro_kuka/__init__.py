"""One and two KUKA arms with Allegro hands that lift, throw and turn cuboids."""
