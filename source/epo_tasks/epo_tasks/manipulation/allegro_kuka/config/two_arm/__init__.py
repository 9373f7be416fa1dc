"""Two arms. Entropy scales are those of SAPG's and EPO's published commands."""

from epo_tasks.manipulation.allegro_kuka.registration import register

register("TwoArm-Regrasp", f"{__name__}.env_cfg:RegraspEnvCfg", entropy_coef_scale=0.002)
register("TwoArm-Reorient", f"{__name__}.env_cfg:ReorientEnvCfg", entropy_coef_scale=0.002)
register("TwoArm-Reorient-Hole", f"{__name__}.env_cfg:HoleEnvCfg", entropy_coef_scale=0.002)
register("TwoArm-Reorient-Partition", f"{__name__}.env_cfg:PartitionEnvCfg", entropy_coef_scale=0.002)
register("TwoArm-Reorient-Barrier", f"{__name__}.env_cfg:BarrierEnvCfg", entropy_coef_scale=0.002)
