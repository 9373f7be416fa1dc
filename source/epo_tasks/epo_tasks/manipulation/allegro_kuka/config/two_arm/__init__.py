"""Two arms. Entropy scales are those of SAPG's and EPO's published commands; CPO's paper has others."""

from epo_tasks.manipulation.allegro_kuka.registration import register

NO_ENTROPY, ENTROPY = {"entropy_coef_scale": 0.0}, {"entropy_coef_scale": 0.005}

register("TwoArm-Regrasp", f"{__name__}.env_cfg:RegraspEnvCfg", entropy_coef_scale=0.002, cpo=NO_ENTROPY)
register("TwoArm-Reorient", f"{__name__}.env_cfg:ReorientEnvCfg", entropy_coef_scale=0.002, cpo=ENTROPY)
register("TwoArm-Reorient-Hole", f"{__name__}.env_cfg:HoleEnvCfg", entropy_coef_scale=0.002, cpo=ENTROPY)
register("TwoArm-Reorient-Partition", f"{__name__}.env_cfg:PartitionEnvCfg", entropy_coef_scale=0.002, cpo=ENTROPY)
register("TwoArm-Reorient-Barrier", f"{__name__}.env_cfg:BarrierEnvCfg", entropy_coef_scale=0.002, cpo=ENTROPY)
