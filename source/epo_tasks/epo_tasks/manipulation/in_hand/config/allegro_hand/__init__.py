"""The Allegro hand. SAPG's best run has no entropy bonus here."""

from epo_tasks.manipulation.in_hand.registration import register

register(
    "Allegro",
    f"{__name__}.env_cfg:AllegroReorientEnvCfg",
    "AllegroPpoCfg",
    entropy_coef_scale=0.0,
    cpo={"attraction": 5.0e-4, "attraction_temperature": 0.1, "adversarial_coef": 0.001},
)
