"""Config of the parkour field."""

from collections.abc import Callable

from isaaclab.sim import PreviewSurfaceCfg
from isaaclab.terrains import SubTerrainBaseCfg, TerrainGeneratorCfg, TerrainImporterCfg
from isaaclab.utils import configclass

from epo_tasks.common.ground_cfg import FIRM_SURFACE

from .tracks import SIZE, TRACKS


@configclass
class TrackCfg(SubTerrainBaseCfg):
    """A track type; the field builds it by its name (:data:`~.tracks.TRACKS`)."""

    function: Callable | None = None
    convert_to_heightfield: bool = True


@configclass
class ParkourTerrainGeneratorCfg(TerrainGeneratorCfg):
    """Ten levels along x, columns of one track type each along y."""

    class_type: type | Callable | str = "{DIR}.generator:ParkourTerrainGenerator"
    seed: int | None = 0
    """Seed of the field. Default 0: all runs meet the same tracks; None takes the environment's."""
    curriculum: bool = True
    size: tuple[float, float] = SIZE
    num_rows: int = 10
    """Levels. Default 10."""
    num_cols: int = 20
    """Columns, shared equally by the types. Default 20."""
    border_width: float = 5.0
    horizontal_scale: float = 0.05
    vertical_scale: float = 0.005
    slope_threshold: float | None = 1.5
    sub_terrains: dict[str, SubTerrainBaseCfg] = {name: TrackCfg() for name in TRACKS}


@configclass
class ParkourTerrainCfg(TerrainImporterCfg):
    """The field as the ground of a scene."""

    class_type: type | Callable | str = "{DIR}.importer:ParkourTerrainImporter"
    prim_path: str = "/World/ground"
    terrain_type: str = "generator"
    terrain_generator: TerrainGeneratorCfg | None = ParkourTerrainGeneratorCfg()
    max_init_terrain_level: int | None = 0
    """Highest level that robots begin on. Default 0; the reference draws from 0 to 5."""
    collision_group: int = -1
    physics_material = FIRM_SURFACE
    # Isaac Lab's default is black, on which nothing can be seen
    visual_material = PreviewSurfaceCfg(diffuse_color=(0.62, 0.58, 0.50))
