"""The Shadow hand. SAPG's best run has an entropy bonus here."""

from epo_tasks.manipulation.in_hand.registration import register

register(
    "Shadow",
    f"{__name__}.env_cfg:ShadowReorientEnvCfg",
    "ShadowPpoCfg",
    entropy_coef_scale=0.005,
    cpo={"adversarial_coef": 0.01},
)
