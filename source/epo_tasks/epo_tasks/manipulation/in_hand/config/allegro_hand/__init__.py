"""The Allegro hand. SAPG's best run has no entropy bonus here."""

from epo_tasks.manipulation.in_hand.registration import register

register("Allegro", f"{__name__}.env_cfg:AllegroReorientEnvCfg", "AllegroPpoCfg", entropy_coef_scale=0.0)
