"""One arm. Entropy scales are those of SAPG's and EPO's published commands."""

from epo_tasks.manipulation.allegro_kuka.registration import register

register("OneArm-Regrasp", f"{__name__}.env_cfg:RegraspEnvCfg", entropy_coef_scale=0.0)
register("OneArm-Throw", f"{__name__}.env_cfg:ThrowEnvCfg", entropy_coef_scale=0.0, cpo={"attraction_temperature": 0.1})
register("OneArm-Reorient", f"{__name__}.env_cfg:ReorientEnvCfg", entropy_coef_scale=0.005)
