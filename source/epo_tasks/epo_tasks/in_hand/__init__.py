"""A hand turns a cube to one orientation after the other: IsaacGymEnvs' AllegroHand and ShadowHand."""
